#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace cadre::base {
namespace {

// RFC 3720, B.4.
TEST(Crc32c, IsThatOfThePublishedExamples) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, EveryLengthIsThatOfOneBitAtATime) {
  const auto slowly = [](std::string_view bytes) {
    std::uint32_t crc = ~0u;
    for (const char byte : bytes) {
      crc ^= static_cast<unsigned char>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
  };
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(bytes), slowly(bytes)) << i;
    bytes += static_cast<char>(i * 37);
  }
}

}  // namespace
}  // namespace cadre::base
