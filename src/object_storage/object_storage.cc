#include "object_storage/object_storage.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <concepts>
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

// An upload that is aborted unless closed: the stream's destructor would complete it, and part of a file would replace
// the whole one.
class Upload {
 public:
  explicit Upload(std::shared_ptr<arrow::io::OutputStream> stream) : stream_(std::move(stream)) {}
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  ~Upload() {
    try {
      if (!stream_->closed()) (void)stream_->Abort();
    } catch (const std::exception&) {  // from Azure's library
    }
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
  const std::string reason = without_secrets(status.message());
  const Diagnosis diagnosis = diagnose(reason, path(name));
  throw StorageFault(diagnosis.kind, fmt::format("cannot {} {}: {}{}{}", doing, shown_name(name), reason,
                                                 diagnosis.advice.empty() ? "" : "; ", diagnosis.advice));
}

// Arrow does not catch exceptions of Azure's library.
template <class Act>
auto ObjectStorage::attempt(const char* doing, const std::string& name, const Act& act) const {
  auto result = [&]() -> decltype(act()) {
    try {
      return act();
    } catch (const std::exception& error) {
      return arrow::Status::IOError(error.what());
    }
  }();
  if constexpr (std::same_as<decltype(result), arrow::Status>) {
    if (!result.ok()) fail(result, doing, name);
  } else {
    if (!result.ok()) fail(result.status(), doing, name);
    return std::move(result).ValueUnsafe();
  }
}

void ObjectStorage::write(const std::string& name, std::string_view bytes) {
  Upload upload(attempt("write", name, [&] { return file_system_->OpenOutputStream(path(name)); }));
  attempt("write", name, [&] { return upload.write(bytes); });
  attempt("write", name, [&] { return upload.close(); });
}

Contents ObjectStorage::upload(const FileToUpload& file, const std::string& name) {
  LocalFile source(file);
  Upload upload(attempt("write", name, [&] { return file_system_->OpenOutputStream(path(name)); }));
  const Contents contents =
      read_pieces(source, [&](std::string_view piece) { attempt("write", name, [&] { return upload.write(piece); }); });
  attempt("write", name, [&] { return upload.close(); });
  return contents;
}

arrow::fs::FileInfo ObjectStorage::look_at(const std::string& name) const {
  arrow::fs::FileInfo info = attempt("look at", name, [&] { return file_system_->GetFileInfo(path(name)); });
  // A response truncated in its header looks like that of an empty file.
  if (info.IsFile() && info.size() <= 0)
    info = attempt("look at", name, [&] { return file_system_->GetFileInfo(path(name)); });
  return info;
}

void ObjectStorage::require_size(std::int64_t size, const arrow::fs::FileInfo& info, const std::string& name) const {
  if (size == info.size()) return;
  throw StorageFault(StorageFault::Kind::passing,
                     fmt::format("cannot read {}: {} bytes came instead of {}", shown(uri_ / name), size, info.size()));
}

// Reads until the size is unchanged after the read: a file replaced meanwhile would be cut to the old length.
std::optional<std::string> ObjectStorage::read(const std::string& name) {
  constexpr int kTries = 5;
  for (int attempt = 1;; ++attempt) {
    const auto info = look_at(name);
    if (!info.IsFile()) return std::nullopt;
    std::string bytes = read_all(info, name);
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (size == look_at(name).size()) return bytes;
    if (attempt == kTries)
      throw StorageFault(StorageFault::Kind::passing,
                         "cannot read " + shown(uri_ / name) + ": it changes all the time");
  }
}

std::string ObjectStorage::read_all(const arrow::fs::FileInfo& info, const std::string& name) const {
  const auto stream = attempt("read", name, [&] { return file_system_->OpenInputStream(info); });
  std::string bytes;
  for (;;) {
    const auto piece = attempt("read", name, [&] { return stream->Read(kPieceBytes); });
    if (piece->size() == 0) return bytes;
    bytes += std::string_view(*piece);
  }
}

Contents ObjectStorage::download(const std::string& name, const fs::path& file) {
  const auto info = look_at(name);
  if (!info.IsFile()) throw StorageFault(StorageFault::Kind::lasting, shown(uri_ / name) + " is not there");
  const auto stream = attempt("read", name, [&] { return file_system_->OpenInputStream(info); });
  std::shared_ptr<arrow::Buffer> piece;
  const Contents contents = write_pieces(file, [&] {
    piece = attempt("read", name, [&] { return stream->Read(kPieceBytes); });
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
  for (const auto& info : attempt("list", folder, [&] { return file_system_->GetFileInfo(selector); })) {
    if (info.IsFile()) files.push_back(to_stored_file(info, info.path().substr(root_.size() + 1)));
  }
  std::ranges::sort(files, {}, &StoredFile::name);
  return files;
}

void ObjectStorage::remove(const std::string& name) {
  if (find(name)) attempt("remove", name, [&] { return file_system_->DeleteFile(path(name)); });
}

void ObjectStorage::remove_folder(const std::string& folder) {
  const auto is_there = [&] {
    const auto info = attempt("look at", folder, [&] { return file_system_->GetFileInfo(path(folder)); });
    return info.type() == arrow::fs::FileType::Directory;
  };
  if (!is_there()) return;
  if (file_system_->type_name() != "s3") {
    // Google's folders are only parts of object names: Arrow fails to remove a folder that was never created.
    for (const StoredFile& file : list(folder)) remove(file.name);
    if (file_system_->type_name() == "gcs" || !is_there()) return;
    (void)file_system_->DeleteDir(path(folder));  // a remaining empty folder does no harm
    return;
  }
  attempt("remove", folder, [&] { return file_system_->DeleteDir(path(folder)); });
}

}  // namespace cadre::storage
