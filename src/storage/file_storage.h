// A directory as a storage: of a network file system, or a local one.
#pragma once

#include "storage/storage.h"

namespace cadre::storage {

class FileStorage final : public Storage {
 public:
  // The directory is made with the first file.
  explicit FileStorage(std::filesystem::path root) : root_(std::move(root)) {}

  void write(const std::string& name, std::string_view bytes) override;
  Contents upload(const std::filesystem::path& file, const std::string& name) override;
  std::optional<std::string> read(const std::string& name) override;
  Contents download(const std::string& name, const std::filesystem::path& file) override;
  std::optional<StoredFile> find(const std::string& name) override;
  std::vector<StoredFile> list(const std::string& folder) override;
  void remove(const std::string& name) override;
  void remove_folder(const std::string& folder) override;

 private:
  std::filesystem::path root_;
};

}  // namespace cadre::storage
