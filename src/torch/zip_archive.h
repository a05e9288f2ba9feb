// Reader of zip archives written by torch.save: records stored without compression. Does not depend on torch.
//
// PyTorch's own reader is not used because it does not check the records' checksums: a flipped bit in a weight would
// be loaded silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"

namespace cadre::pt {

class ZipArchive {
 public:
  // Opens a file and reads its directory. Throws NotFound if there is no file, StorageError with file and offset if it
  // is truncated, damaged or not such an archive.
  explicit ZipArchive(const std::filesystem::path& file);

  // Names are relative to the archive's single top folder: "data.pkl", "data/0".
  bool contains(std::string_view name) const { return records_.contains(name); }
  // Throws StorageError if there is no such record.
  std::size_t size_bytes(std::string_view name) const { return record(name).size; }
  // Fills `target`, which must have the record's size, and compares the checksum. Throws StorageError.
  void read(std::string_view name, std::span<std::byte> target) const;
  // Returns a record of at most `limit_bytes`. Throws StorageError.
  std::string read_text(std::string_view name, std::size_t limit_bytes) const;

 private:
  struct Record {
    std::uint64_t header_offset = 0;
    std::uint64_t size = 0;
    std::uint64_t end = 0;  // start of the next record or the directory
    std::uint32_t crc32 = 0;
    bool is_plain = true;  // neither compressed nor encrypted
  };
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t record_count = 0;
    std::uint64_t end = 0;  // start of the end record, which contains the other fields
  };

  const Record& record(std::string_view name) const;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void find_ends(std::uint64_t directory_offset);
  void read_bytes(std::uint64_t offset, std::span<std::byte> target) const;
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;

  base::ReadableFile file_;
  std::uint64_t size_ = 0;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace cadre::pt
