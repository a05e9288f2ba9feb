#include "object_storage/s3.h"

#include <arrow/filesystem/filesystem.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>

#include "cadre/error.h"

namespace cadre::storage {

void load_s3() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info arrow{};
    ::dladdr(reinterpret_cast<const void*>(&arrow::fs::LoadFileSystemFactories), &arrow);
    const std::filesystem::path library(arrow.dli_fname);
    std::string name = library.filename();  // libarrow.so.2600
    name.insert(name.find(".so"), "_s3");
    const arrow::Status status = arrow::fs::LoadFileSystemFactories((library.parent_path() / name).c_str());
    if (!status.ok()) throw InvalidArgument("Arrow's S3 file system cannot be loaded: " + status.message());
  });
}

std::string to_s3_uri(Uri uri) {
  constexpr const char* kOption = "allow_delayed_open=";
  if (uri.query.find(kOption) == uri.query.npos)
    uri.query += (uri.query.empty() ? "" : "&") + std::string(kOption) + "true";
  return to_string(uri);
}

void finish_s3_at_exit(bool is_made) {
  static std::once_flag begun;
  static std::once_flag made;  // atexit functions run in reverse order; a second shutdown does nothing
  std::call_once(is_made ? made : begun, [] { std::atexit(arrow::fs::EnsureFinalized); });
}

}  // namespace cadre::storage
