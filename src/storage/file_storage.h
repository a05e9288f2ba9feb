// A directory of a network or local file system as a storage.
#pragma once

#include "storage/storage.h"

namespace cadre::storage {

class FileStorage final : public Storage {
 public:
  // Sets the root directory, which is made with the first file.
  explicit FileStorage(std::filesystem::path root) : root_(std::move(root)) {}

  void write(const std::string& name, std::string_view bytes) override;
  Contents upload(const FileToUpload& file, const std::string& name) override;
  std::optional<std::string> read(const std::string& name) override;
  Contents download(const std::string& name, const std::filesystem::path& file) override;
  std::optional<StoredFile> find(const std::string& name) override;
  std::vector<StoredFile> list(const std::string& folder) override;
  void remove(const std::string& name) override;
  void remove_folder(const std::string& folder) override;
  void remove_unfinished() override;
  // Returns true if the file system has locks.
  bool has_conditional_writes() override;
  std::optional<VersionedBytes> read_versioned(const std::string& name) override;
  std::optional<Version> version_of(const std::string& name) override;
  std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                  const std::optional<Version>& expected) override;
  std::optional<Version> upload_if(const FileToUpload& file, const std::string& name,
                                   const std::optional<Version>& expected) override;

 private:
  std::optional<Version> replace_if(const std::filesystem::path& unfinished, const std::string& name,
                                    const std::optional<Version>& expected);
  std::optional<Version> rename_if(const std::filesystem::path& unfinished, const std::string& name,
                                   const std::optional<Version>& expected);

  std::filesystem::path root_;
};

}  // namespace cadre::storage
