#include "pictures/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace {

using pictures::GreyPicture;
using testing::ElementsAre;
using testing::Pair;

std::size_t big_endian(const std::string& bytes, std::size_t offset) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<std::uint8_t>(bytes.at(offset + i));
  return number;
}

using Chunks = std::vector<std::pair<std::string, std::string>>;

// Returns types and data of a PNG's chunks, and checks their checksums.
Chunks chunks_of(const std::string& png) {
  Chunks chunks;
  for (std::size_t offset = 8; offset < png.size();) {
    const std::size_t size = big_endian(png, offset);
    const std::string checked = png.substr(offset + 4, 4 + size);
    EXPECT_EQ(big_endian(png, offset + 8 + size),
              crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
    chunks.emplace_back(checked.substr(0, 4), checked.substr(4));
    offset += 12 + size;
  }
  return chunks;
}

std::string unpacked(const std::string& bytes, std::size_t size) {
  std::string result(size + 1, '\0');
  uLongf actual = result.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(result.data()), &actual, reinterpret_cast<const Bytef*>(bytes.data()),
                       bytes.size()),
            Z_OK);
  result.resize(actual);
  return result;
}

TEST(Png, HasTheSizesAndThePixelsRowByRow) {
  const cadre::test_support::TemporaryDirectory folder;
  pictures::write_png(folder / "a.png", {.width = 3, .height = 2, .pixels = {1, 2, 3, 253, 254, 255}});

  const std::string png = cadre::base::read_file(folder / "a.png");
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const Chunks chunks = chunks_of(png);
  const std::string header("\0\0\0\x03\0\0\0\x02\x08\0\0\0\0", 13);  // 3 x 2, 8 bits of grey
  ASSERT_THAT(chunks, ElementsAre(Pair("IHDR", header), Pair("IDAT", testing::_), Pair("IEND", "")));
  EXPECT_EQ(unpacked(chunks[1].second, 8), std::string("\0\x01\x02\x03\0\xfd\xfe\xff", 8));
}

TEST(Png, APictureWhosePixelsAreNotAsManyAsItsSizesSayIsRefused) {
  const cadre::test_support::TemporaryDirectory folder;
  for (const GreyPicture& picture :
       std::vector<GreyPicture>{{.width = 2, .height = 2, .pixels = {1, 2, 3}},
                                {.width = 0, .height = 2, .pixels = {}},
                                {.width = 20'000, .height = 1, .pixels = std::vector<std::uint8_t>(20'000)}}) {
    EXPECT_THROW(pictures::write_png(folder / "a.png", picture), cadre::InvalidArgument);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.png"));
}

TEST(Png, AFileThatCannotBeWrittenIsNamed) {
  const cadre::test_support::TemporaryDirectory folder;
  const GreyPicture picture{.width = 1, .height = 1, .pixels = {7}};
  for (const std::filesystem::path& file : {folder / "missing" / "a.png", std::filesystem::path("/dev/full")}) {
    EXPECT_THAT([&] { pictures::write_png(file, picture); },
                testing::ThrowsMessage<cadre::StorageError>(testing::HasSubstr(file.string())));
  }
}

}  // namespace
