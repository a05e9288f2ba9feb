#include "store/wal_scan.h"

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace cadre::store {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kSmallestPage = 512;
constexpr std::uint32_t kLargestPage = 65536;
constexpr std::uint32_t kMagic = 0x377f0682;  // the lowest bit is set if checksums are big-endian

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// The running checksum of the whole log.
struct Checksum {
  bool is_big_endian = false;
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  void add(std::string_view bytes) {
    const auto word = is_big_endian ? big_endian : little_endian;
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      first += word(bytes, at) + second;
      second += word(bytes, at + 4) + first;
    }
  }
  bool is_at(std::string_view bytes, std::size_t at) const {
    return first == big_endian(bytes, at) && second == big_endian(bytes, at + 4);
  }
};

class Log {
 public:
  explicit Log(const std::filesystem::path& path)
      : file_(base::ReadableFile::open(path, base::ReadableFile::Links::follow)), size_(file_ ? file_->size() : 0) {}

  std::uint64_t size() const { return size_; }

  // Fills `bytes` from `offset`. Returns false if the file ends before.
  bool read(std::uint64_t offset, std::string& bytes) const {
    return offset + bytes.size() <= size_ &&
           file_->read(offset, std::as_writable_bytes(std::span(bytes))) == bytes.size();
  }

 private:
  std::optional<base::ReadableFile> file_;
  std::uint64_t size_;
};

// Returns true if a transaction was committed at or behind `offset`. Rolled-back transactions also leave frames behind
// the end of the log, but never a commit frame.
bool holds_a_commit(const Log& log, std::uint64_t offset, std::size_t frame_bytes, std::string_view salts) {
  std::string header(kFrameHeaderBytes, '\0');
  for (; offset + frame_bytes <= log.size() && log.read(offset, header); offset += frame_bytes) {
    if (std::string_view(header).substr(8, 8) == salts && big_endian(header, 4) != 0) return true;
  }
  return false;
}

}  // namespace

WalScan scan_wal(const std::filesystem::path& path) {
  const Log log(path);
  WalScan scan;
  std::string header(kHeaderBytes, '\0');
  if (!log.read(0, header)) return scan;
  const std::uint32_t magic = big_endian(header, 0);
  const std::uint32_t page_bytes = big_endian(header, 8);
  Checksum checksum{.is_big_endian = (magic & 1) != 0};
  checksum.add(std::string_view(header).substr(0, 24));
  const bool is_page_size =
      std::has_single_bit(page_bytes) && page_bytes >= kSmallestPage && page_bytes <= kLargestPage;
  if ((magic & ~1U) != kMagic || !checksum.is_at(header, 24) || !is_page_size) {
    if (log.size() > kHeaderBytes) scan.damage = 0;
    return scan;
  }

  const std::string_view salts = std::string_view(header).substr(16, 8);
  std::string frame(kFrameHeaderBytes + page_bytes, '\0');
  std::vector<std::uint32_t> transaction;  // pages of the transaction that is being read
  for (std::uint64_t offset = kHeaderBytes; log.read(offset, frame); offset += frame.size()) {
    const std::string_view view = frame;
    checksum.add(view.substr(0, 8));
    checksum.add(view.substr(kFrameHeaderBytes));
    if (view.substr(8, 8) != salts || !checksum.is_at(view, 16)) {
      if (holds_a_commit(log, offset + frame.size(), frame.size(), salts)) scan.damage = offset;
      return scan;
    }
    transaction.push_back(big_endian(view, 0));
    const std::uint32_t pages = big_endian(view, 4);
    if (pages == 0) continue;
    scan.pages = pages;
    scan.holds.insert(transaction.begin(), transaction.end());
    transaction.clear();
  }
  return scan;
}

}  // namespace cadre::store
