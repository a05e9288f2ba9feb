// Changes of images, alone and in batches; tests/compat/data_transform_test.py compares the pixels with Pillow's.
#include "cadre/data/image_transforms.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cadre/data/mix_up.h"
#include "cadre/data/read.h"
#include "small_datasets.h"
#include "support/image_file.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using test_support::png_of;
using test_support::smooth_pixels;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Image image_of(int height, int width, int channels, int seed = 0) {
  return {
      .height = height, .width = width, .channels = channels, .pixels = smooth_pixels(height, width, channels, seed)};
}

// A batch of files' bytes, with the numbers of its rows.
Batch files(const std::vector<Image>& images, std::int64_t first_row = 0) {
  std::vector<std::string> bytes;
  for (const Image& image : images)
    bytes.push_back(png_of(image.pixels, static_cast<int>(image.height), static_cast<int>(image.width),
                           static_cast<int>(image.channels)));
  std::vector<std::int64_t> rows(images.size());
  std::iota(rows.begin(), rows.end(), first_row);
  arrow::BinaryBuilder builder;
  for (const std::string& one : bytes) EXPECT_TRUE(builder.Append(one).ok());
  return Batch({{"bytes", Column(builder.Finish().ValueOrDie())}, {"row", std::move(rows)}});
}

std::vector<float> floats(const ImageTransforms& transforms, const Batch& batch) {
  return Batch({{"image", transforms(batch, "bytes")}}).to_vector<float>("image");
}

TEST(ImageChanges, RefuseWhatTheyCannotDoWithAReason) {
  const Image image = image_of(4, 6, 3);
  EXPECT_THAT(message_of<InvalidArgument>([&] { resize(image, {}); }), HasSubstr("must be from 1 to 65500"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { crop(image, {}); }), HasSubstr("must be above 0"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { resized_crop(image, {.top = 1, .height = 4, .width = 6}, {2, 2}); }),
              AllOf(HasSubstr("4 x 6 pixels at row 1"), HasSubstr("crop() fills")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { rotate(image, kNan); }), HasSubstr("must be finite"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { adjust_brightness(image, -1); }), HasSubstr("must be 0 or more"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { adjust_hue(image, 0.6); }), HasSubstr("from -0.5 to 0.5"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { adjust_contrast(image_of(4, 6, 4), 1); }), HasSubstr("ImageMode::rgb"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { resize(Image{.height = 2, .width = 2, .channels = 3}, {1, 1}); }),
              HasSubstr("has 0 bytes"));
}

TEST(ImageTransforms, ListAllFaultsOfTheirSteps) {
  const std::string message = message_of<InvalidArgument>([] {
    ImageTransforms({transforms::Normalize{.mean = {1, 2}, .std = {0}}, transforms::Resize{},
                     transforms::RandomCrop{.size = {1, 1}, .padding = -1}, transforms::RandomHorizontalFlip{.p = 2},
                     transforms::RandomResizedCrop{.size = {1, 1}, .scale = {0.5, 0.1}, .ratio = {0, 1}},
                     transforms::ColorJitter{.hue = 0.7}},
                    {.epoch = std::uint64_t{1} << 24});
  });
  EXPECT_THAT(message, HasSubstr("step 1, Normalize: mean has 2 numbers and std 1"));
  EXPECT_THAT(message, HasSubstr("step 1, Normalize: std has a 0"));
  EXPECT_THAT(message, HasSubstr("step 1, Normalize: it must be the last step"));
  EXPECT_THAT(message, HasSubstr("step 2, Resize: size is {0, 0}"));
  EXPECT_THAT(message, HasSubstr("step 3, RandomCrop: padding is -1"));
  EXPECT_THAT(message, HasSubstr("step 4, RandomHorizontalFlip: p is 2"));
  EXPECT_THAT(message, HasSubstr("step 5, RandomResizedCrop: scale is {0.5, 0.1}"));
  EXPECT_THAT(message, HasSubstr("step 5, RandomResizedCrop: ratio is {0, 1}"));
  EXPECT_THAT(message, HasSubstr("step 6, ColorJitter: hue is 0.7"));
  EXPECT_THAT(message, HasSubstr("epoch is 16777216"));
}

TEST(ImageTransforms, NormalizeInTheOrderOfChannels) {
  const Image image = image_of(2, 3, 3);
  const ImageTransforms transforms(
      {transforms::Normalize{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}});
  const Batch batch({{"image", transforms(files({image}), "bytes")}});
  EXPECT_THAT(batch.row_shape("image"), ElementsAre(3, 2, 3));
  const auto values = batch.values<float>("image");
  const float mean[] = {0.485F, 0.456F, 0.406F};
  const float deviation[] = {0.229F, 0.224F, 0.225F};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t pixel = 0; pixel < 6; ++pixel)
      EXPECT_EQ(values[channel * 6 + pixel],
                (static_cast<float>(image.pixels[pixel * 3 + channel]) / 255.0F - mean[channel]) / deviation[channel]);
  }
}

TEST(ImageTransforms, DependOnSeedEpochAndRowOnly) {
  const std::vector<ImageTransform> steps = {
      transforms::RandomResizedCrop{.size = {8, 8}},
      transforms::RandomHorizontalFlip(),
      transforms::RandomVerticalFlip(),
      transforms::RandomRotation{.degrees = {-30, 30}},
      transforms::ColorJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1},
      transforms::RandomCrop{.size = {8, 8}, .padding = 1},
      transforms::Normalize()};
  const std::vector<Image> images(6, image_of(20, 30, 3));
  const auto all = floats(ImageTransforms(steps, {.seed = 1, .epoch = 2}), files(images));
  const auto later = floats(ImageTransforms(steps, {.seed = 1, .epoch = 2}), files({images[0], images[1]}, 3));
  const std::ptrdiff_t row = 3 * 8 * 8;
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + 3 * row));
  EXPECT_FALSE(std::equal(all.begin(), all.begin() + row, all.begin() + row));
  EXPECT_NE(floats(ImageTransforms(steps, {.seed = 1, .epoch = 3}), files(images)), all);
  EXPECT_NE(floats(ImageTransforms(steps, {.seed = 2, .epoch = 2}), files(images)), all);
}

TEST(ImageTransforms, TakeTensorsOfOneShapeAndOfAny) {
  const ImageTransforms transforms({transforms::CenterCrop{.size = {2, 2}}});
  const Image image = image_of(4, 6, 3);
  const Batch tensors({{"image", Column(image.pixels, {4, 6, 3})}});
  const Batch made({{"image", transforms(tensors, "image")}});
  const auto values = made.values<std::uint8_t>("image");
  EXPECT_EQ(std::vector(values.begin(), values.end()), center_crop(image, {2, 2}).pixels);
  const test_support::TemporaryDirectory directory;
  for (const int side : {5, 9})
    test_support::write_bytes(directory.path() / (std::to_string(side) + ".png"),
                              png_of(smooth_pixels(side, side, 3), side, side, 3));
  const Batch any = threads(read_images(directory.path(), {.equal_shapes = false})).take_batch();
  EXPECT_THAT(Batch({{"image", transforms(any, "image")}}).row_shape("image"), ElementsAre(2, 2, 3));
}

TEST(ImageTransforms, NameTheRowThatDoesNotFit) {
  const ImageTransforms crop({transforms::RandomCrop{.size = {4, 4}}});
  const std::vector<Image> images = {image_of(4, 4, 3), image_of(3, 4, 3)};
  EXPECT_THAT(message_of<InvalidArgument>([&] { crop(files(images), "bytes"); }),
              AllOf(HasSubstr("column \"bytes\", row 1, which is row 1 of the dataset: RandomCrop: a part of 4 x 4"),
                    HasSubstr("resize before")));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { crop(files(images).select(std::vector<std::string>{"bytes"}), "bytes"); }),
      HasSubstr("call with_row_numbers(dataset) before"));
  const ImageTransforms flip({transforms::Normalize()});
  EXPECT_THAT(message_of<InvalidArgument>([&] { flip(files(images), "bytes"); }),
              AllOf(HasSubstr("row 1 of the dataset: it has the shape 3 x 3 x 4"), HasSubstr("end with Resize")));
  EXPECT_THAT(message_of<StorageError>([&] {
                arrow::BinaryBuilder builder;
                EXPECT_TRUE(builder.Append("no image").ok());
                flip(Batch({{"bytes", Column(builder.Finish().ValueOrDie())}, {"row", std::vector<std::int64_t>{0}}}),
                     "bytes");
              }),
              HasSubstr("cannot transform column \"bytes\", row 0, which is row 0 of the dataset: it is neither"));
}

TEST(ImageTransforms, NameTheRowOfTheDatasetAndTheFile) {
  const ImageTransforms transforms({transforms::Resize{{2, 2}}});
  const Batch batch{{"bytes", std::vector<std::string>{"no image"}},
                    {"row", std::vector<std::int64_t>{417}},
                    {"path", std::vector<std::string>{"/b.png"}}};
  arrow::BinaryBuilder bytes;
  EXPECT_TRUE(bytes.Append("no image").ok());
  EXPECT_THAT(
      message_of<StorageError>([&] { transforms(batch.with("bytes", Column(bytes.Finish().ValueOrDie())), "bytes"); }),
      HasSubstr("column \"bytes\", row 0, which is row 417 of the dataset, of /b.png: it is neither"));
}

TEST(ImageTransforms, UseMemoryOfColumnsThatAreGone) {
  const ImageTransforms transforms({transforms::Normalize()});
  const Batch batch = files({image_of(4, 4, 3)});
  const auto place = [&] { return Batch({{"image", transforms(batch, "bytes")}}).values<float>("image").data(); };
  const float* const first = place();
  EXPECT_EQ(place(), first);
}

TEST(MixUp, MixesEachRowWithTheOneBefore) {
  const Batch batch({{"image", Column(std::vector<float>{1, 2, 3, 4, 5, 6}, {2})},
                     {"label", std::vector<std::int64_t>{0, 2, 1}},
                     {"row", std::vector<std::int64_t>{7, 8, 9}}});
  const Batch mixed = mix_up(batch, "image", "label", {.alpha = 0.4, .num_classes = 3});
  const auto labels = mixed.values<float>("label");
  const float part = labels[0];
  EXPECT_THAT(part, AllOf(::testing::Gt(0.0F), ::testing::Lt(1.0F)));
  EXPECT_THAT(std::vector(labels.begin(), labels.end()),
              ElementsAre(part, 1 - part, 0, 1 - part, 0, part, 0, part, 1 - part));
  const auto images = mixed.values<float>("image");
  EXPECT_FLOAT_EQ(images[0], 1 * part + 5 * (1 - part));
  EXPECT_FLOAT_EQ(images[3], 4 * part + 2 * (1 - part));
  EXPECT_EQ(mix_up(batch, "image", "label", {.alpha = 0.4, .num_classes = 3}), mixed);
  EXPECT_NE(mix_up(batch, "image", "label", {.alpha = 0.4, .num_classes = 3, .epoch = 1}), mixed);
}

TEST(MixUp, RefusesOtherLabelsAndOptions) {
  const Batch batch({{"image", std::vector<float>{1, 2}},
                     {"label", std::vector<std::int64_t>{0, 3}},
                     {"row", std::vector<std::int64_t>{0, 1}}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { mix_up(batch, "image", "label", {.num_classes = 3}); }),
              HasSubstr("the label 3 in row 1; labels are from 0 to num_classes - 1, which is 2"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { mix_up(batch, "image", "label", {.alpha = 0}); }),
              AllOf(HasSubstr("alpha is 0"), HasSubstr("num_classes is 0")));
}

}  // namespace
}  // namespace cadre::data
