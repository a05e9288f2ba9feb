// Reading of zip archives as torch.save writes them: records that are stored without compression. Knows no torch.
//
// PyTorch's own reader is not used because it does not look at the records' checksums: a flipped bit in a weight would
// be loaded without a word.
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
  // Opens a file and reads its directory. Throws NotFound where there is no file, StorageError with file and offset
  // when it is cut, damaged or no such archive.
  explicit ZipArchive(const std::filesystem::path& file);

  // Names are those inside the archive's one top folder: "data.pkl", "data/0".
  bool contains(std::string_view name) const { return records_.contains(name); }
  // Throws StorageError where there is no such record.
  std::size_t size_bytes(std::string_view name) const { return record(name).size; }
  // Fills `target`, which has the record's size, and compares the checksum. Throws StorageError.
  void read(std::string_view name, std::span<std::byte> target) const;
  // A record of at most `limit_bytes`. Throws StorageError.
  std::string read_text(std::string_view name, std::size_t limit_bytes) const;

 private:
  struct Record {
    std::uint64_t header_offset = 0;
    std::uint64_t size = 0;
    std::uint64_t end = 0;  // where the next record or the directory begins
    std::uint32_t crc32 = 0;
    bool is_plain = true;  // neither compressed nor encrypted
  };
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t record_count = 0;
    std::uint64_t end = 0;  // where the archive's end begins, which says the others
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
