#include "base/crc32c.h"

#include <array>
#include <cstddef>

namespace cadre::base {
namespace {

// Processes eight bytes per step (Kounavis and Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC
// Generation"). Entry [k][b] is the checksum of byte b followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  constexpr std::uint32_t polynomial = 0x82f63b78;  // bit-reversed
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xffu];
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at])); };
  while (bytes.size() >= 8) {
    const std::uint32_t low = crc ^ (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
    crc = kTables[7][low & 0xffu] ^ kTables[6][low >> 8 & 0xffu] ^ kTables[5][low >> 16 & 0xffu] ^
          kTables[4][low >> 24] ^ kTables[3][byte(4)] ^ kTables[2][byte(5)] ^ kTables[1][byte(6)] ^ kTables[0][byte(7)];
    bytes.remove_prefix(8);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) crc = crc >> 8 ^ kTables[0][(crc ^ byte(i)) & 0xffu];
  return ~crc;
}

}  // namespace cadre::base
