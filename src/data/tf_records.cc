#include "data/tf_records.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "cadre/error.h"
#include "data/files.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kMostRecordBytes = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kChecksumBytes = 4;

// Tables for eight bytes at a time.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;
  CrcTables tables = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t table = 1; table < 8; ++table) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[table - 1][byte];
      tables[table][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr CrcTables kCrcTables = make_crc_tables();

template <class Number>
Number little_endian(const std::uint8_t* bytes) {
  Number number = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;) number = static_cast<Number>(number << 8 | bytes[i]);
  return number;
}

// Checksums are stored in a form in which the checksum of data with checksums is no special one.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }

std::string_view content_of(const arrow::Buffer& buffer, std::int64_t size) {
  return {reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(size)};
}

}  // namespace

std::uint32_t crc32c(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t left = text.size();
  std::uint32_t crc = ~std::uint32_t{0};
  for (; left >= 8; left -= 8, bytes += 8) {
    const std::uint32_t low = little_endian<std::uint32_t>(bytes) ^ crc;
    const auto high = little_endian<std::uint32_t>(bytes + 4);
    crc = kCrcTables[7][low & 0xff] ^ kCrcTables[6][low >> 8 & 0xff] ^ kCrcTables[5][low >> 16 & 0xff] ^
          kCrcTables[4][low >> 24] ^ kCrcTables[3][high & 0xff] ^ kCrcTables[2][high >> 8 & 0xff] ^
          kCrcTables[1][high >> 16 & 0xff] ^ kCrcTables[0][high >> 24];
  }
  for (; left > 0; --left, ++bytes) crc = crc >> 8 ^ kCrcTables[0][(crc ^ *bytes) & 0xff];
  return ~crc;
}

TfRecords::TfRecords(std::shared_ptr<arrow::io::InputStream> stream, std::string doing)
    : stream_(std::move(stream)), doing_(std::move(doing)) {}

std::shared_ptr<arrow::Buffer> TfRecords::read(std::int64_t bytes) { return read_up_to(*stream_, bytes, doing_); }

std::optional<std::string_view> TfRecords::next() {
  constexpr const char* kEarly = "the file ends within a record: write it again";
  constexpr std::int64_t kHeaderBytes = 8 + kChecksumBytes;
  can_continue_ = false;
  const auto header = read(kHeaderBytes);
  if (header->size() == 0) return std::nullopt;
  if (header->size() < kHeaderBytes) throw StorageError(kEarly);
  if (masked(crc32c(content_of(*header, 8))) != little_endian<std::uint32_t>(header->data() + 8))
    throw StorageError(
        "the checksum of the record's length is wrong: the file is damaged from here on, or it is no file "
        "of TFRecords; write it again");
  const auto size = little_endian<std::uint64_t>(header->data());
  if (size > static_cast<std::uint64_t>(kMostRecordBytes))
    throw StorageError(fmt::format("the record has {} bytes, and it may have up to 2 GiB", size));
  const auto bytes = static_cast<std::int64_t>(size);
  record_ = read(bytes + kChecksumBytes);
  if (record_->size() < bytes + kChecksumBytes) throw StorageError(kEarly);
  can_continue_ = true;
  const std::string_view record = content_of(*record_, bytes);
  if (masked(crc32c(record)) != little_endian<std::uint32_t>(record_->data() + bytes))
    throw StorageError("the checksum of the record is wrong: it is damaged; write the file again, or leave it out");
  return record;
}

}  // namespace cadre::data
