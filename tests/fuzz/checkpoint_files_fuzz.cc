// Any manifest: either the files are as it lists them, or a fault is found.
#include "checkpoint/checkpoint_files.h"

#include <algorithm>

#include "base/json.h"
#include "cadre/error.h"
#include "fuzz/require.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;
using test_support::TemporaryDirectory;

namespace {

// Returns a checkpoint with the files that the seeds list.
const std::filesystem::path& checkpoint_folder() {
  static const TemporaryDirectory directory;
  static const bool made = [] {
    std::filesystem::create_directory(directory / "model");
    test_support::write_bytes(directory / "model/weights", "1234");
    test_support::write_bytes(directory / "empty", "");
    return true;
  }();
  require(made, "there is a checkpoint");
  return directory.path();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const Dict sealed = checkpoint::seal_files(checkpoint_folder().parent_path(), checkpoint_folder().filename());
  Value manifest;
  try {
    manifest = base::parse_json({data, size}, "text");
  } catch (const StorageError&) {
    return 0;
  }
  if (!manifest.is_dict() || !checkpoint::fault_of_files(checkpoint_folder(), manifest.dict(), true).empty()) return 0;
  for (const auto& [name, listed] : manifest.dict()) {
    const auto file =
        std::ranges::find(sealed, std::filesystem::path(name).lexically_normal().string(), &Dict::value_type::first);
    require(file != sealed.end(), "only a checkpoint's own files are without fault");
    const Config facts(file->second.dict());
    const Config claimed(listed.dict());
    require(claimed.at("size") == facts.at("size"), "a file has the size that is listed");
    require(!claimed.contains("xxh3") || claimed.at("xxh3") == facts.at("xxh3"),
            "a file has the content that is listed");
  }
  return 0;
}
