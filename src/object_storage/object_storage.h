// Object storages through Arrow's file systems: s3, gs and abfs.
#pragma once

#include <arrow/filesystem/filesystem.h>

#include <memory>
#include <string>

#include "storage/storage.h"

namespace cadre::storage {

class ObjectStorage : public Storage {
 public:
  // `root` is a path in the file system.
  ObjectStorage(Uri uri, std::shared_ptr<arrow::fs::FileSystem> file_system, std::string root);

  void write(const std::string& name, std::string_view bytes) override;
  Contents upload(const FileToUpload& file, const std::string& name) override;
  std::optional<std::string> read(const std::string& name) override;
  Contents download(const std::string& name, const std::filesystem::path& file) override;
  std::optional<StoredFile> find(const std::string& name) override;
  std::vector<StoredFile> list(const std::string& folder) override;
  void remove(const std::string& name) override;
  void remove_folder(const std::string& folder) override;

 protected:
  // Returns the URI of an object for messages.
  std::string shown_name(const std::string& name) const { return shown(name.empty() ? uri_ : uri_ / name); }

 private:
  std::string path(const std::string& name) const;
  [[noreturn]] void fail(const arrow::Status& status, const char* doing, const std::string& name) const;
  // Calls `act`, which calls Arrow, and returns the value of its result. Throws StorageFault on failure.
  template <class Act>
  auto attempt(const char* doing, const std::string& name, const Act& act) const;
  arrow::fs::FileInfo look_at(const std::string& name) const;
  std::string read_all(const arrow::fs::FileInfo& info, const std::string& name) const;
  void require_size(std::int64_t size, const arrow::fs::FileInfo& info, const std::string& name) const;

  Uri uri_;
  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  std::string root_;
};

}  // namespace cadre::storage
