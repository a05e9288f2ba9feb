// A file of any bytes is either no archive or one whose records are each read completely or refused.
#include <string>
#include <vector>

#include "cadre/error.h"
#include "fuzz/require.h"
#include "support/temporary_directory.h"
#include "torch/zip_archive.h"

using namespace cadre;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  const std::filesystem::path path = directory / "checkpoint.pt";
  test_support::write_bytes(path, std::string(data, size));
  try {
    const pt::ZipArchive archive(path);
    for (const char* name : {"data.pkl", "data/0", "data/1", "version"}) {
      if (!archive.contains(name)) continue;
      const std::string text = archive.read_text(name, size);
      require(std::string_view(data, size).find(text) != std::string_view::npos, "a record is a part of the file");
    }
  } catch (const StorageError&) {
  }
  return 0;
}
