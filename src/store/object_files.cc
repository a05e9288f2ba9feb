#include "store/object_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/checksum.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::store {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kHashDigits = 32;

std::string hash_of(std::span<const std::byte> bytes) {
  base::ContentHash hash;
  hash.add(as_text(bytes));
  return hash.hex();
}

std::string wrong_size(const fs::path& path, std::string_view id, std::uint64_t size) {
  return fmt::format("the object {} has {} bytes in {} instead of {}: the file is damaged", id, size, path.string(),
                     size_of_object(id).value_or(0));
}

std::string not_there(const fs::path& path, std::string_view id) {
  return fmt::format("the object {} is gone: there is no file {}", id, path.string());
}

void write_synced(const fs::path& path, std::span<const std::byte> bytes) {
  base::FileDescriptor file = base::open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  base::write_all(file.get(), as_text(bytes), path);
  if (::fchmod(file.get(), 0444) != 0) base::throw_storage_error("protect", path);
  if (::fsync(file.get()) != 0) base::throw_storage_error("sync", path);
  base::close_written(file, path);
}

}  // namespace

std::string object_id(std::string_view hash, std::size_t size) { return fmt::format("{}-{}", hash, size); }

std::optional<std::size_t> size_of_object(std::string_view id) {
  if (id.size() < kHashDigits + 2 || id[kHashDigits] != '-') return std::nullopt;
  const std::string_view hash = id.substr(0, kHashDigits);
  if (hash.find_first_not_of("0123456789abcdef") != hash.npos) return std::nullopt;
  const std::string_view digits = id.substr(kHashDigits + 1);
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return fmt::to_string(size) == digits ? std::optional(size) : std::nullopt;  // each size has only one spelling
}

fs::path object_path(const fs::path& directory, std::string_view id) { return directory / kObjectsDirectory / id; }

std::string fault_of_object(const fs::path& path, std::string_view id, bool contents) {
  try {
    const std::optional<base::ReadableFile> file = base::ReadableFile::open(path, base::ReadableFile::Links::refuse);
    if (!file) return not_there(path, id);
    if (file->size() != size_of_object(id)) return wrong_size(path, id, file->size());
    if (!contents) return {};
    const auto mapped = map_object(path, id);
    if (object_id(hash_of(mapped->bytes()), mapped->bytes().size()) == id) return {};
    return fmt::format("the object {} has other contents in {}: the file is damaged", id, path.string());
  } catch (const Error& error) {
    return error.what();
  }
}

std::shared_ptr<const base::MemoryMap> map_object(const fs::path& path, std::string_view id) {
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) throw NotFound(not_there(path, id));
  if (!file) base::throw_storage_error("read", path);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) base::throw_storage_error("read", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size != size_of_object(id)) throw StorageError(wrong_size(path, id, size));
  return std::make_shared<const base::MemoryMap>(file.get(), size, path);
}

void write_object(const fs::path& directory, std::string_view id, std::span<const std::byte> bytes) {
  const fs::path path = object_path(directory, id);
  if (fault_of_object(path, id, false).empty()) return;
  if (object_id(hash_of(bytes), bytes.size()) != id)
    throw StorageError(fmt::format("the object {} is damaged: its contents are others than when it was put", id));
  base::make_own_directory(path.parent_path());
  fs::path unfinished = path;
  unfinished += ".tmp";
  base::remove_tree(unfinished);  // left by a killed process; it is write-protected
  try {
    write_synced(unfinished, bytes);
  } catch (...) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw;
  }
  base::rename(unfinished, path);
  base::sync_directory(path.parent_path());
  base::sync_directory(directory);
}

}  // namespace cadre::store
