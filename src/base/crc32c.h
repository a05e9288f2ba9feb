// CRC-32C (Castagnoli; RFC 3720), the checksum in TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace cadre::base {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace cadre::base
