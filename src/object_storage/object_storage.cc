#include "object_storage/object_storage.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "object_storage/faults.h"
#include "storage/copy.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

StoredFile to_stored_file(const arrow::fs::FileInfo& info, std::string name) {
  return {std::move(name), info.size(), std::chrono::duration<double>(info.mtime().time_since_epoch()).count()};
}

// An upload that was not closed would be finished by its destructor: part of a file would take the place of the whole.
class Upload {
 public:
  explicit Upload(std::shared_ptr<arrow::io::OutputStream> stream) : stream_(std::move(stream)) {}
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  ~Upload() {
    if (!stream_->closed()) (void)stream_->Abort();
  }

  arrow::Status write(std::string_view piece) {
    return stream_->Write(piece.data(), static_cast<std::int64_t>(piece.size()));
  }
  arrow::Status close() { return stream_->Close(); }

 private:
  std::shared_ptr<arrow::io::OutputStream> stream_;
};

}  // namespace

ObjectStorage::ObjectStorage(Uri uri, std::shared_ptr<arrow::fs::FileSystem> file_system, std::string root)
    : uri_(std::move(uri)), file_system_(std::move(file_system)), root_(std::move(root)) {
  while (root_.ends_with('/')) root_.pop_back();
}

std::string ObjectStorage::path(const std::string& name) const { return name.empty() ? root_ : root_ + "/" + name; }

void ObjectStorage::fail(const arrow::Status& status, const char* doing, const std::string& name) const {
  const Diagnosis diagnosis = diagnose(status.message());
  throw StorageFault(diagnosis.kind,
                     fmt::format("cannot {} {}: {}{}{}", doing, shown(name.empty() ? uri_ : uri_ / name),
                                 status.message(), diagnosis.advice.empty() ? "" : "; ", diagnosis.advice));
}

void ObjectStorage::check(const arrow::Status& status, const char* doing, const std::string& name) const {
  if (!status.ok()) fail(status, doing, name);
}

template <class T>
T ObjectStorage::checked(arrow::Result<T> result, const char* doing, const std::string& name) const {
  if (!result.ok()) fail(result.status(), doing, name);
  return std::move(result).ValueUnsafe();
}

void ObjectStorage::write(const std::string& name, std::string_view bytes) {
  Upload upload(checked(file_system_->OpenOutputStream(path(name)), "write", name));
  check(upload.write(bytes), "write", name);
  check(upload.close(), "write", name);
}

Contents ObjectStorage::upload(const fs::path& file, const std::string& name) {
  LocalFile source(file);
  Upload upload(checked(file_system_->OpenOutputStream(path(name)), "write", name));
  const Contents contents =
      read_pieces(source, [&](std::string_view piece) { check(upload.write(piece), "write", name); });
  check(upload.close(), "write", name);
  return contents;
}

arrow::fs::FileInfo ObjectStorage::look_at(const std::string& name) const {
  arrow::fs::FileInfo info = checked(file_system_->GetFileInfo(path(name)), "look at", name);
  // An answer that was cut in its header looks like that of an empty file.
  if (info.IsFile() && info.size() <= 0) info = checked(file_system_->GetFileInfo(path(name)), "look at", name);
  return info;
}

void ObjectStorage::require_size(std::int64_t size, const arrow::fs::FileInfo& info, const std::string& name) const {
  if (size == info.size()) return;
  throw StorageFault(StorageFault::Kind::passing,
                     fmt::format("cannot read {}: {} bytes came instead of {}", shown(uri_ / name), size, info.size()));
}

// What is there now: one that is replaced while it is read would be cut to the length of the one before.
std::optional<std::string> ObjectStorage::read(const std::string& name) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const auto info = look_at(name);
    if (!info.IsFile()) return std::nullopt;
    std::string bytes = read_all(info, name);
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (size == look_at(name).size()) return bytes;
    if (attempt == kAttempts)
      throw StorageFault(StorageFault::Kind::passing,
                         "cannot read " + shown(uri_ / name) + ": it changes all the time");
  }
}

std::string ObjectStorage::read_all(const arrow::fs::FileInfo& info, const std::string& name) const {
  const auto stream = checked(file_system_->OpenInputStream(info), "read", name);
  std::string bytes;
  for (;;) {
    const auto piece = checked(stream->Read(kPieceBytes), "read", name);
    if (piece->size() == 0) return bytes;
    bytes += std::string_view(*piece);
  }
}

Contents ObjectStorage::download(const std::string& name, const fs::path& file) {
  const auto info = look_at(name);
  if (!info.IsFile()) throw StorageFault(StorageFault::Kind::lasting, shown(uri_ / name) + " is not there");
  const auto stream = checked(file_system_->OpenInputStream(info), "read", name);
  std::shared_ptr<arrow::Buffer> piece;
  const Contents contents = write_pieces(file, [&] {
    piece = checked(stream->Read(kPieceBytes), "read", name);
    return std::string_view(*piece);
  });
  require_size(contents.size, info, name);
  return contents;
}

std::optional<StoredFile> ObjectStorage::find(const std::string& name) {
  const auto info = look_at(name);
  return info.IsFile() ? std::optional(to_stored_file(info, name)) : std::nullopt;
}

std::vector<StoredFile> ObjectStorage::list(const std::string& folder) {
  arrow::fs::FileSelector selector;
  selector.base_dir = path(folder);
  selector.allow_not_found = true;
  selector.recursive = true;
  std::vector<StoredFile> files;
  for (const auto& info : checked(file_system_->GetFileInfo(selector), "list", folder)) {
    if (info.IsFile()) files.push_back(to_stored_file(info, info.path().substr(root_.size() + 1)));
  }
  std::ranges::sort(files, {}, &StoredFile::name);
  return files;
}

void ObjectStorage::remove(const std::string& name) {
  if (find(name)) check(file_system_->DeleteFile(path(name)), "remove", name);
}

void ObjectStorage::remove_folder(const std::string& folder) {
  const auto info = checked(file_system_->GetFileInfo(path(folder)), "look at", folder);
  if (info.type() == arrow::fs::FileType::Directory) check(file_system_->DeleteDir(path(folder)), "remove", folder);
}

}  // namespace cadre::storage
