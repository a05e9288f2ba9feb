// Copies bytes in pieces between a local file and a storage, and computes their checksum.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "storage/storage.h"

namespace cadre::storage {

// The contents of a regular file up to its size when it was opened: the file may grow meanwhile.
class LocalFile {
 public:
  // Throws StorageError if there is no such file.
  explicit LocalFile(const FileToUpload& file);

  // Returns the next piece, valid until the next call; empty at the end. Throws StorageError, also if the file has
  // become shorter, and Interrupted if its upload is to end early.
  std::string_view operator()();
  std::uint64_t size() const { return size_; }  // bytes

 private:
  base::ReadableFile file_;
  const std::atomic<bool>* stop_;
  std::uint64_t size_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t offset_ = 0;
};

// Passes all pieces of a file to `take` and returns their size and checksum.
Contents read_pieces(LocalFile& file, const std::function<void(std::string_view)>& take);
// Writes a local file, replacing an existing one, from the pieces that `next` returns until one is empty. Throws
// OutOfSpace or StorageError; part of the file may exist then.
Contents write_pieces(const std::filesystem::path& file, const std::function<std::string_view()>& next);

}  // namespace cadre::storage
