// Decoding of images from bytes; tests/compat/data_read_test.py compares the pixels with Pillow's.
#include "cadre/data/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>

#include <random>

#include "support/image_file.h"
#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::deep_grey_png_of;
using test_support::jpeg_of;
using test_support::message_of;
using test_support::png_of;
using test_support::smooth_pixels;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string png(int height, int width, int channels, int seed = 0) {
  return png_of(smooth_pixels(height, width, channels, seed), height, width, channels);
}
std::string jpeg(int height, int width, int channels, bool is_progressive = false) {
  return jpeg_of(smooth_pixels(height, width, channels), height, width, channels, is_progressive);
}

// Sets height and width in the header of a PNG file, with its checksum left as it is, or of a JPEG file.
std::string with_size(std::string bytes, std::uint32_t height, std::uint32_t width) {
  const auto set = [&](std::size_t at, std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * (count - 1 - i));
  };
  const std::size_t frame = bytes.find("\xff\xc0");
  if (bytes.starts_with("\xff\xd8")) {
    set(frame + 5, height, 2);
    set(frame + 7, width, 2);
  } else {
    set(16, width, 4);
    set(20, height, 4);
    set(29, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const unsigned char*>(bytes.data()) + 12, 17)), 4);
  }
  return bytes;
}

TEST(DecodeImage, GivesThePixelsOfAPngFile) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image image = decode_image(png(5, 7, channels));
    EXPECT_EQ(image.height, 5);
    EXPECT_EQ(image.width, 7);
    EXPECT_EQ(image.channels, channels);
    EXPECT_EQ(image.pixels, smooth_pixels(5, 7, channels));
  }
  EXPECT_THAT(decode_image(png(5, 7, 3)).shape(), ElementsAre(5, 7, 3));
  EXPECT_THAT(decode_image(png(5, 7, 1)).shape(), ElementsAre(5, 7));
}

TEST(DecodeImage, GivesAboutThePixelsOfAJpegFile) {
  for (const bool is_progressive : {false, true}) {
    const Image image = decode_image(jpeg(64, 48, 1, is_progressive));
    const std::vector<std::uint8_t> exact = smooth_pixels(64, 48, 1);
    ASSERT_EQ(image.pixels.size(), exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(image.pixels[i], exact[i], 16);
  }
  EXPECT_THAT(decode_image(jpeg(16, 24, 3)).shape(), ElementsAre(16, 24, 3));
}

TEST(DecodeImage, ConvertsToEveryMode) {
  const Image grey = decode_image(png(2, 3, 1));
  const Image rgb = decode_image(png(2, 3, 1), {.mode = ImageMode::rgb});
  const Image rgba = decode_image(png(2, 3, 1), {.mode = ImageMode::rgba});
  ASSERT_EQ(rgb.pixels.size(), 18U);
  ASSERT_EQ(rgba.pixels.size(), 24U);
  for (std::size_t pixel = 0; pixel < 6; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(rgb.pixels[pixel * 3 + channel], grey.pixels[pixel]);
      EXPECT_EQ(rgba.pixels[pixel * 4 + channel], grey.pixels[pixel]);
    }
    EXPECT_EQ(rgba.pixels[pixel * 4 + 3], 255);
  }
  EXPECT_EQ(decode_image(png_of({10, 200, 30}, 1, 1, 3), {.mode = ImageMode::grey}).pixels,
            (std::vector<std::uint8_t>{124}));  // 0.299 x 10 + 0.587 x 200 + 0.114 x 30
  EXPECT_EQ(decode_image(png_of({10, 200, 30, 7}, 1, 1, 4), {.mode = ImageMode::rgb}).pixels,
            (std::vector<std::uint8_t>{10, 200, 30}));
}

TEST(DecodeImage, MakesAnImageSmallerByAveragingAllOfItsPixels) {
  std::vector<std::uint8_t> stripes;
  for (int pixel = 0; pixel < 64 * 64; ++pixel) stripes.push_back(pixel % 2 == 0 ? 0 : 200);
  const Image image = decode_image(png_of(stripes, 64, 64, 1), {.size = {4, 8}});
  EXPECT_THAT(image.shape(), ElementsAre(4, 8));
  for (const std::uint8_t pixel : image.pixels) EXPECT_NEAR(pixel, 100, 5);
}

TEST(DecodeImage, DoesNotMixColoursOfTransparentPixels) {
  std::vector<std::uint8_t> pixels;
  for (int pixel = 0; pixel < 16; ++pixel) {
    const bool is_transparent = pixel % 2 == 1;
    for (const int value : {is_transparent ? 255 : 40, is_transparent ? 255 : 80, is_transparent ? 255 : 120})
      pixels.push_back(static_cast<std::uint8_t>(value));
    pixels.push_back(is_transparent ? 0 : 255);
  }
  const Image image = decode_image(png_of(pixels, 4, 4, 4), {.size = {2, 2}});
  for (std::size_t pixel = 0; pixel < 4; ++pixel) {
    EXPECT_NEAR(image.pixels[pixel * 4], 40, 1);
    EXPECT_NEAR(image.pixels[pixel * 4 + 2], 120, 1);
    EXPECT_NEAR(image.pixels[pixel * 4 + 3], 128, 20);
  }
}

TEST(DecodeImage, RefusesAFileThatIsCutAnywhere) {
  for (const std::string& bytes : {png(9, 11, 3), jpeg(40, 30, 3), jpeg(40, 30, 3, true), jpeg(17, 9, 1)}) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THAT(message_of<StorageError>([&] { decode_image(bytes.substr(0, size)); }),
                  AnyOf(HasSubstr("ends early"), HasSubstr("damaged"), HasSubstr("it is empty"),
                        HasSubstr("neither a JPEG nor a PNG")))
          << size << " of " << bytes.size();
    EXPECT_NO_THROW(decode_image(bytes));
  }
  EXPECT_THAT(message_of<StorageError>([] { decode_image(jpeg(40, 30, 3).substr(0, 700)); }),
              HasSubstr("it is a JPEG image that ends early: write it again, or leave it out"));
}

TEST(DecodeImage, SurvivesDamagedBytes) {
  std::mt19937 random(1);
  for (const std::string& good : {png(9, 11, 3), jpeg(40, 30, 3), jpeg(40, 30, 3, true)}) {
    for (int round = 0; round < 500; ++round) {
      std::string bytes = good;
      for (int fault = 0; fault < 3; ++fault) bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        const Image image = decode_image(bytes, {.size = {8, 8}, .mode = ImageMode::rgb});
        EXPECT_EQ(image.pixels.size(), 192U);
      } catch (const StorageError&) {
      }
    }
  }
}

TEST(DecodeImage, RefusesAHugeImageByItsHeader) {
  EXPECT_THAT(message_of<StorageError>([] { decode_image(with_size(jpeg(16, 16, 3), 65500, 65500)); }),
              HasSubstr("65500 x 65500 pixels"));
  EXPECT_THAT(message_of<StorageError>([] { decode_image(with_size(png(16, 16, 3), 900'000, 900'000)); }),
              HasSubstr("900000 x 900000 pixels, and images have from 1 to 178956970"));
  for (const std::string& bytes : {with_size(jpeg(16, 16, 3), 12000, 12000), with_size(png(16, 16, 3), 12000, 12000)})
    EXPECT_THAT(message_of<StorageError>([&] { decode_image(bytes); }),
                HasSubstr("it has a header of an image of 12000 x 12000 pixels, and too few bytes for them"));
}

TEST(DecodeImage, ReadsLargeImagesOfOneColour) {
  const std::vector<std::uint8_t> black(1'000'000, 0);
  EXPECT_EQ(decode_image(png_of(black, 1000, 1000, 1)).pixels, black);
  EXPECT_EQ(decode_image(jpeg_of(black, 1000, 1000, 1)).pixels, black);
  EXPECT_EQ(decode_image(jpeg_of(black, 1000, 1000, 1, true)).pixels, black);
}

TEST(DecodeImage, SaysWhichFormatsThereAre) {
  EXPECT_THAT(message_of<StorageError>([] { decode_image("GIF89a..."); }),
              HasSubstr("it is neither a JPEG nor a PNG image"));
  EXPECT_THAT(message_of<StorageError>([] { decode_image(""); }), HasSubstr("it is empty"));
}

TEST(DecodeImage, WantsAModeForColoursOfPrinters) {
  const std::string bytes = jpeg(8, 8, 4);
  EXPECT_THAT(message_of<InvalidArgument>([&] { decode_image(bytes); }), HasSubstr("(CMYK): give a mode"));
  EXPECT_THAT(decode_image(bytes, {.mode = ImageMode::rgb}).shape(), ElementsAre(8, 8, 3));
}

TEST(DecodeImage, HasTheUpperBitsOfDeepGreyIfAskedForAMode) {
  std::vector<std::uint16_t> pixels;
  for (int i = 0; i < 12; ++i) pixels.push_back(static_cast<std::uint16_t>(i * 5000 + 255));
  const std::string bytes = deep_grey_png_of(pixels, 3, 4);
  EXPECT_THAT(message_of<InvalidArgument>([&] { decode_image(bytes); }), HasSubstr("grey of 16 bits"));
  const Image grey = decode_image(bytes, {.mode = ImageMode::grey});
  const Image colours = decode_image(bytes, {.mode = ImageMode::rgb});
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    EXPECT_EQ(grey.pixels[i], pixels[i] >> 8);
    EXPECT_EQ(colours.pixels[3 * i + 1], pixels[i] >> 8);
  }
}

TEST(DecodeImage, RefusesASizeThatIsNone) {
  for (const ImageSize size : {ImageSize{0, 5}, ImageSize{5, 0}, ImageSize{-1, 5}, ImageSize{70000, 5}})
    EXPECT_THAT(message_of<InvalidArgument>([&] { decode_image(png(2, 2, 1), {.size = size}); }),
                HasSubstr("must be from 1 to 65500"));
}

TEST(DecodeImages, MakesAColumnOfTensors) {
  const Batch batch{{"bytes", std::vector<std::string>{png(4, 6, 3, 1), png(4, 6, 3, 2)}}};
  const Batch decoded = batch.with("image", decode_images(batch, "bytes"));
  EXPECT_THAT(decoded.row_shape("image"), ElementsAre(4, 6, 3));
  std::vector<std::uint8_t> expected = smooth_pixels(4, 6, 3, 1);
  const std::vector<std::uint8_t> second = smooth_pixels(4, 6, 3, 2);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(decoded.to_vector<std::uint8_t>("image"), expected);
}

TEST(DecodeImages, NameTheFileThatCannotBeDecoded) {
  const Batch batch{{"bytes", std::vector<std::string>{png(4, 6, 3), ""}},
                    {"path", std::vector<std::string>{"/a.png", "/b.png"}}};
  EXPECT_EQ(message_of<StorageError>([&] { decode_images(batch, "bytes"); }),
            "cannot decode column \"bytes\", row 1, of /b.png: it is empty: write it again, or leave it out");
}

TEST(DecodeImages, NameTheRowThatCannotBeDecoded) {
  const Batch batch{{"bytes", std::vector<std::string>{png(4, 6, 3), png(4, 6, 3).substr(0, 80), png(5, 6, 3)}}};
  EXPECT_THAT(message_of<StorageError>([&] { decode_images(batch, "bytes"); }),
              HasSubstr("cannot decode column \"bytes\", row 1: it is a PNG image that ends early"));
  const Batch others{{"bytes", std::vector<std::string>{png(4, 6, 3), png(5, 6, 3)}}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { decode_images(others, "bytes"); }),
              HasSubstr("row 1: it has the shape 5 x 6 x 3, and row 0 has 4 x 6 x 3: give a size and a mode"));
  EXPECT_THAT(decode_images(others, "bytes", {.size = {2, 2}}).size(), 2);
}

}  // namespace
}  // namespace cadre::data
