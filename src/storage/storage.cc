#include "storage/storage.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/checksum.h"
#include "base/file.h"
#include "storage/file_storage.h"
#include "storage/module.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::array kObjectSchemes{"s3", "gs", "gcs", "abfs", "abfss"};

// Returns the error message. The loader's reason begins with the name of the missing file.
std::string cannot_load(const Uri& uri, const char* loader_reason) {
  const std::string_view reason = loader_reason == nullptr ? "no reason given" : loader_reason;
  if (reason.starts_with("libarrow"))
    return fmt::format(
        "{} needs Arrow, which is installed in the folder of {} and is missing there: install Cadre again, "
        "or add the folder pyarrow of the Python wheel of that version to LD_LIBRARY_PATH ({})",
        shown(uri), kModuleFile, reason);
  return fmt::format(
      "{} needs Cadre's library for object storages, which this program does not find: link the program "
      "with cadre::storage (find_package(cadre COMPONENTS storage)), or add the folder of {} to "
      "LD_LIBRARY_PATH ({})",
      shown(uri), kModuleFile, reason);
}

// Loads the library, which is never unloaded. Its name has no path, so the loader searches the program's RUNPATH,
// then LD_LIBRARY_PATH.
OpenObjectStorage load_module(const Uri& uri) {
  static std::mutex mutex;
  static OpenObjectStorage loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded != nullptr) return loaded;
  void* const library = ::dlopen(kModuleFile, RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, kModuleFunction);
  if (function == nullptr) throw InvalidArgument(cannot_load(uri, ::dlerror()));
  return loaded = reinterpret_cast<OpenObjectStorage>(function);
}

}  // namespace

std::string checksum_text(const Contents& contents) { return fmt::format("{:016x}", contents.checksum); }

// Defaults for a storage without conditional writes of its own: a check, then a write.

std::optional<VersionedBytes> Storage::read_versioned(const std::string& name) {
  auto bytes = read(name);
  if (!bytes) return std::nullopt;
  Version version = fmt::format("{:016x}", base::checksum_of(*bytes));
  return VersionedBytes{*std::move(bytes), std::move(version)};
}

std::optional<Version> Storage::version_of(const std::string& name) {
  const auto found = read_versioned(name);
  return found ? std::optional(found->version) : std::nullopt;
}

std::optional<Version> Storage::write_if(const std::string& name, std::string_view bytes,
                                         const std::optional<Version>& expected) {
  if (version_of(name) != expected) return std::nullopt;
  write(name, bytes);
  return fmt::format("{:016x}", base::checksum_of(bytes));
}

std::optional<Version> Storage::upload_if(const fs::path& file, const std::string& name,
                                          const std::optional<Version>& expected) {
  if (version_of(name) != expected) return std::nullopt;
  return checksum_text(upload(file, name));
}

std::unique_ptr<Storage> open_storage(const Uri& uri) {
  if (const fs::path directory = directory_of(uri); !directory.empty()) return std::make_unique<FileStorage>(directory);
  if (std::ranges::find(kObjectSchemes, uri.scheme) != kObjectSchemes.end())
    return std::unique_ptr<Storage>(load_module(uri)(uri));
  throw InvalidArgument(fmt::format("nothing is known about the scheme of {}: there are file, {}", shown(uri),
                                    fmt::join(kObjectSchemes, ", ")));
}

}  // namespace cadre::storage
