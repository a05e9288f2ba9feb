#include "storage/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "base/file.h"
#include "storage/arrow_module.h"
#include "storage/file_storage.h"
#include "storage/module.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::array kObjectSchemes{"s3", "gs", "abfs"};

bool needs_module(const Uri& uri) { return std::ranges::find(kObjectSchemes, uri.scheme) != kObjectSchemes.end(); }

// Returns the function of the library for object storages. Throws InvalidArgument with what is missing.
OpenObjectStorage load_module(const Uri& uri) {
  prepare_arrow(shown(uri));
  std::string reason;
  if (void* const function = load_arrow_module(kModuleFile, kModuleFunction, reason))
    return reinterpret_cast<OpenObjectStorage>(function);
  if (is_arrow_missing(reason))
    throw InvalidArgument(
        fmt::format("{} needs Arrow, which was not found: {} ({})", shown(uri), how_to_get_arrow(), reason));
  throw InvalidArgument(
      fmt::format("{} needs Cadre's library for object storages, which this program does not find: link the program "
                  "with cadre::storage (find_package(cadre COMPONENTS storage)), install the Python package for Python "
                  "3.11 or later, or add the folder of {} to LD_LIBRARY_PATH ({})",
                  shown(uri), kModuleFile, reason));
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

std::optional<Version> Storage::upload_if(const FileToUpload& file, const std::string& name,
                                          const std::optional<Version>& expected) {
  if (version_of(name) != expected) return std::nullopt;
  return checksum_text(upload(file, name));
}

void prepare_storage(const Uri& uri) {
  if (needs_module(uri)) load_module(uri);
}

std::unique_ptr<Storage> open_storage(const Uri& uri) {
  if (const fs::path directory = directory_of(uri); !directory.empty()) return std::make_unique<FileStorage>(directory);
  if (needs_module(uri)) return std::unique_ptr<Storage>(load_module(uri)(uri));
  throw InvalidArgument(fmt::format("nothing is known about the scheme of {}: there are file, {}", shown(uri),
                                    fmt::join(kObjectSchemes, ", ")));
}

}  // namespace cadre::storage
