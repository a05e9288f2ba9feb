// Bytes on their way between a local file and a storage, in pieces, with their checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "storage/storage.h"

namespace cadre::storage {

// The contents of a regular file, as long as it was when it was opened: it may grow.
class LocalFile {
 public:
  // Throws StorageError where there is none.
  explicit LocalFile(const std::filesystem::path& path);

  // The next piece, good until the next call; an empty one at the end. Throws StorageError, also for a file that has
  // become shorter.
  std::string_view operator()();
  std::uint64_t size() const { return size_; }  // bytes

 private:
  base::ReadableFile file_;
  std::uint64_t size_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t offset_ = 0;
};

// Hands all pieces of a file on.
Contents read_pieces(LocalFile& file, const std::function<void(std::string_view)>& take);
// Writes a local file, in the place of one that may be there, from the pieces that `next` gives until there is an empty
// one. Throws OutOfSpace or StorageError; part of the file may be there then.
Contents write_pieces(const std::filesystem::path& file, const std::function<std::string_view()>& next);

}  // namespace cadre::storage
