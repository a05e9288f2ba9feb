// Headers of logs with a page size that SQLite does not accept. Truncated and damaged logs are in store_damage_test.cc.
#include "store/wal_scan.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using cadre::test_support::TemporaryDirectory;
using cadre::test_support::write_bytes;

// Appends a number as big-endian bytes.
void append_number(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xffU);
}

// Returns the header of a log with little-endian checksums.
std::string header_of(std::uint32_t page_bytes) {
  std::string header;
  for (const std::uint32_t number : {0x377f0682U, 3007000U, page_bytes, 0U, 1U, 2U}) append_number(header, number);
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::size_t at = 0; at < header.size(); at += 8) {
    const auto word = [&](std::size_t begin) {
      std::uint32_t value = 0;
      for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(header[begin + i]);
      return value;
    };
    first += word(at) + second;
    second += word(at + 4) + first;
  }
  append_number(header, first);
  append_number(header, second);
  return header;
}

TEST(WalScan, PagesOfASizeThatSqliteDoesNotKnowAreDamage) {
  const TemporaryDirectory directory;
  for (const std::uint32_t page_bytes : {0U, 1U, 4U, 256U, 1000U, 131072U, 0x80000000U}) {
    write_bytes(directory / "log", header_of(page_bytes) + std::string(100, '\0'));
    EXPECT_EQ(scan_wal(directory / "log").damage, 0U) << page_bytes;
  }
  for (const std::uint32_t page_bytes : {512U, 4096U, 65536U}) {
    write_bytes(directory / "log", header_of(page_bytes) + std::string(100, '\0'));
    EXPECT_EQ(scan_wal(directory / "log").damage, std::nullopt) << page_bytes;
  }
}

}  // namespace
}  // namespace cadre::store
