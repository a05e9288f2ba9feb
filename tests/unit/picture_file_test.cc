#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "view/png.h"
#include "view/svg.h"

namespace cadre::view {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;
using testing::HasSubstr;

const std::string kPicture =
    svg::document(40, 20, 12, "a title", "<rect x=\"10\" y=\"5\" width=\"20\" height=\"10\" fill=\"#0072b2\"/>\n");

std::size_t number_at(const std::string& png, std::size_t offset) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(png.at(offset + i));
  return number;
}

TEST(PictureFile, APngHasTwoPixelsForEachOfTheSvgs) {
  const std::string png = to_png(kPicture);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(number_at(png, 16), 80u);
  EXPECT_EQ(number_at(png, 20), 40u);
  EXPECT_EQ(number_at(to_png(kPicture, 1), 16), 40u);
}

TEST(PictureFile, TheEndingDecidesTheFormat) {
  const TemporaryDirectory directory;
  write_picture(kPicture, directory / "a.svg");
  EXPECT_EQ(content_of(directory / "a.svg"), kPicture);
  write_picture(kPicture, directory / "b.PNG");
  EXPECT_EQ(content_of(directory / "b.PNG"), to_png(kPicture));
  for (const char* name : {"c.jpg", "c", ".svg"}) {
    EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { write_picture(kPicture, directory / name); }),
                HasSubstr("a picture's file ends with .svg or .png"));
    EXPECT_FALSE(std::filesystem::exists(directory / name));
  }
}

TEST(PictureFile, WhatCannotBeDrawnIsRefused) {
  for (const std::string& bad : {std::string(), std::string("<svg>"), std::string("<svg width=\"2\" height=\"2\"><g>"),
                                 svg::document(20'000, 10, 12, "", ""), svg::document(0, 10, 12, "", "")})
    EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { to_png(bad); }), HasSubstr("cannot be drawn as PNG"));
}

}  // namespace
}  // namespace cadre::view
