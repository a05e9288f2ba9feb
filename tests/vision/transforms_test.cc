#include "cadre/vision/transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "cadre/error.h"
#include "cadre/train_torch.h"
#include "support/message_of.h"

// tests/compat/torch_vision_test.py compares what is not random with torchvision.
namespace cadre::vision {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns an image whose pixels are all different: channel c has 100 c + 10 row + column.
torch::Tensor numbered(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return (torch::arange(channels).view({-1, 1, 1}) * 100 + torch::arange(height).view({-1, 1}) * 10 +
          torch::arange(width))
      .to(torch::kFloat);
}

// Calls a transform with the random numbers of example `i`.
template <class Transform>
torch::Tensor applied(const Transform& transform, const torch::Tensor& image, std::uint64_t i) {
  KeyedRandom random = KeyedRandom::of_example(1, 0, i);
  return transform(image, *random);
}

std::string fault_of(const std::function<void()>& act) { return message_of<InvalidArgument>(act); }

TEST(RandomCrop, TakesEveryPartAboutEquallyOften) {
  const torch::Tensor image = numbered(1, 5, 6);
  std::map<int, int> corners;
  for (std::uint64_t i = 0; i < 1200; ++i) {
    const torch::Tensor part = applied(RandomCrop{.height = 4, .width = 4}, image, i);
    ASSERT_EQ(part.sizes(), (std::vector<std::int64_t>{1, 4, 4}));
    const torch::Tensor corner = part[0][0][0];
    EXPECT_TRUE(torch::equal(part, numbered(1, 4, 4) + corner));
    ++corners[corner.item<int>()];
  }
  EXPECT_EQ(corners.size(), 6u) << "two rows and three columns";
  for (const auto& [corner, count] : corners) EXPECT_NEAR(count, 200, 60) << corner;
}

TEST(RandomCrop, MayGoIntoThePadding) {
  std::set<float> corners;
  for (std::uint64_t i = 0; i < 100; ++i)
    corners.insert(applied(RandomCrop{.height = 3, .width = 3, .padding = 1, .fill = -7}, numbered(1, 3, 3), i)[0][0][0]
                       .item<float>());
  EXPECT_EQ(corners, (std::set<float>{-7, 0, 1, 10, 11}));
}

TEST(RandomCrop, AnImageThatIsTooSmallIsNamed) {
  EXPECT_THAT(fault_of([] { applied(RandomCrop{.height = 8, .width = 8, .padding = 1}, numbered(1, 5, 9), 0); }),
              HasSubstr("a part of 8 x 8 of an image of 5 x 9 with a padding of 1"));
}

TEST(RandomResizedCrop, HasPartsOfTheSizesAndProportionsThatItMay) {
  // Each pixel has its place, so that corners of the result say which part it is.
  const torch::Tensor image =
      torch::stack({torch::arange(100).view({-1, 1}).expand({100, 100}), torch::arange(100).expand({100, 100})})
          .to(torch::kFloat);
  const RandomResizedCrop transform{.height = 50, .width = 50, .scale = {0.25, 0.5}, .ratio = {0.5, 2}};
  std::set<int> tops;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const torch::Tensor part = applied(transform, image, i);
    ASSERT_EQ(part.sizes(), (std::vector<std::int64_t>{2, 50, 50}));
    const double height = (part[0][49][0] - part[0][0][0]).item<double>() * 50 / 49;
    const double width = (part[1][0][49] - part[1][0][0]).item<double>() * 50 / 49;
    EXPECT_THAT(height * width / 10'000, AllOf(::testing::Ge(0.22), ::testing::Le(0.54)));
    EXPECT_THAT(width / height, AllOf(::testing::Ge(0.46), ::testing::Le(2.17)));
    tops.insert(part[0][0][0].item<int>());
  }
  EXPECT_GT(tops.size(), 20u);
}

TEST(RandomResizedCrop, TakesTheMiddleWhereNoPartHasTheProportions) {
  const torch::Tensor part =
      applied(RandomResizedCrop{.height = 4, .width = 4, .scale = {1, 1}}, numbered(1, 4, 100), 0);
  EXPECT_GT(part[0][0][0].item<float>(), 45) << "of a very wide image";
  EXPECT_LT(part[0][0][3].item<float>(), 54);
}

TEST(RandomFlips, ExchangeSidesOfThePartOfTheImagesThatIsSaid) {
  const torch::Tensor image = numbered(2, 3, 4);
  int horizontal = 0;
  int vertical = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const torch::Tensor aside = applied(RandomHorizontalFlip{.p = 0.3}, image, i);
    EXPECT_TRUE(torch::equal(aside, image) || torch::equal(aside, image.flip(2)));
    horizontal += torch::equal(aside, image.flip(2));
    vertical += torch::equal(applied(RandomVerticalFlip(), image, i), image.flip(1));
  }
  EXPECT_NEAR(horizontal, 300, 60);
  EXPECT_NEAR(vertical, 500, 60);
  EXPECT_THAT(fault_of([&] { applied(RandomHorizontalFlip{.p = 1.5}, image, 0); }), HasSubstr("p is 1.5"));
}

TEST(RandomRotation, TurnsByAnglesOfTheRange) {
  const torch::Tensor image = numbered(1, 5, 5);
  EXPECT_TRUE(torch::equal(applied(RandomRotation{.degrees = {90, 90}}, image, 0), torch::rot90(image, 1, {1, 2})));
  EXPECT_FALSE(torch::equal(applied(RandomRotation{.degrees = {-80, 80}}, image, 0),
                            applied(RandomRotation{.degrees = {-80, 80}}, image, 1)));
  EXPECT_THAT(fault_of([&] { applied(RandomRotation{.degrees = {10, -10}}, image, 0); }),
              HasSubstr("degrees from 10 to -10"));
}

TEST(ColorJitter, ChangesWhatIsAskedForWithinItsBounds) {
  const torch::Tensor grey = torch::full({3, 2, 2}, 0.4);
  std::set<float> brightness;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const torch::Tensor changed = applied(ColorJitter{.brightness = 0.5}, grey, i);
    EXPECT_TRUE(torch::all((changed >= 0.2f - 1e-6).logical_and(changed <= 0.6f + 1e-6)).item<bool>());
    brightness.insert(changed[0][0][0].item<float>());
  }
  EXPECT_GT(brightness.size(), 90u);
  EXPECT_TRUE(torch::equal(applied(ColorJitter(), grey, 0), grey));
  const torch::Tensor colours = torch::rand({3, 4, 4});
  EXPECT_FALSE(torch::allclose(applied(ColorJitter{.hue = 0.5}, colours, 3), colours));
  EXPECT_THAT(fault_of([&] { applied(ColorJitter{.hue = 0.6}, grey, 0); }), HasSubstr("a hue of 0.6"));
}

TEST(RandomErasing, FillsARectangleAndLeavesTheImageItself) {
  const torch::Tensor image = torch::ones({3, 20, 20});
  int erased = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const torch::Tensor changed = applied(RandomErasing{.scale = {0.1, 0.2}, .value = -1}, image, i);
    const double share = changed[0].eq(-1).to(torch::kFloat).mean().item<double>();
    if (share > 0) {
      ++erased;
      EXPECT_THAT(share, AllOf(::testing::Ge(0.07), ::testing::Le(0.24)));
    }
  }
  EXPECT_NEAR(erased, 200, 50);
  EXPECT_TRUE(image.eq(1).all().item<bool>());
}

TEST(MixUp, MixesEachImageWithTheOneBeforeItAndTheirLabelsAsMuch) {
  const auto images = train::TensorDataset(torch::arange(8).to(torch::kFloat).view({8, 1, 1, 1}), torch::arange(8) % 4);
  auto loader = train::prepare_data_loader(images, {.batch_size = 8}, MixUp{.alpha = 0.4, .num_classes = 4});
  const torch::data::Example<> batch = *loader.begin();
  ASSERT_EQ(batch.target.sizes(), (std::vector<std::int64_t>{8, 4}));
  const double part = batch.target[1][1].item<double>();
  EXPECT_THAT(part, AllOf(::testing::Gt(0), ::testing::Lt(1)));
  for (std::int64_t i = 1; i < 8; ++i) {
    EXPECT_NEAR(batch.data[i].item<double>(), part * static_cast<double>(i) + (1 - part) * static_cast<double>(i - 1),
                1e-5);
    EXPECT_NEAR(batch.target[i][i % 4].item<double>(), part, 1e-6);
    EXPECT_NEAR(batch.target[i][(i - 1) % 4].item<double>(), 1 - part, 1e-6);
  }
  auto again =
      train::prepare_data_loader(images, {.batch_size = 8, .num_workers = 3}, MixUp{.alpha = 0.4, .num_classes = 4});
  EXPECT_TRUE(torch::equal(again.begin()->data, batch.data)) << "the same numbers";
  EXPECT_THAT(fault_of([&] { train::prepare_data_loader(images, {.batch_size = 8}, MixUp{.num_classes = 3}).begin(); }),
              HasSubstr("labels up to 3 of 3 classes"));
}

TEST(MixUp, DrawsItsPartsFromTheBetaDistribution) {
  for (const double alpha : {0.2, 1., 4.}) {
    double sum = 0;
    double squares = 0;
    constexpr int count = 4000;
    for (std::uint64_t i = 0; i < count; ++i) {
      KeyedRandom random = KeyedRandom::of_example(1, 0, i);
      const auto batch = MixUp{.alpha = alpha, .num_classes = 2}(
          {torch::tensor({0.F, 1.F}).view({2, 1, 1, 1}), torch::tensor({0, 1})}, *random);
      const double part = batch.data[1].item<double>();
      sum += part;
      squares += part * part;
    }
    const double mean = sum / count;
    EXPECT_NEAR(mean, 0.5, 0.03) << alpha;
    EXPECT_NEAR(squares / count - mean * mean, 1 / (4 * (2 * alpha + 1)), 0.02) << alpha;
  }
}

TEST(Compose, AppliesTransformsInOrder) {
  const auto all = compose(
      to_float, [](const torch::Tensor& image) { return image * 2; },
      [](const torch::Tensor& image, Random& random) { return image + random.uniform(); },
      CenterCrop{.height = 1, .width = 1}, Normalize{{1}, {2}});
  const torch::Tensor image = torch::full({1, 3, 3}, 255).to(torch::kUInt8);
  const double value = applied(all, image, 0).item<double>();
  EXPECT_THAT(value, AllOf(::testing::Ge(0.5), ::testing::Lt(1)));
  EXPECT_EQ(applied(all, image, 0).item<double>(), value);
  auto dataset = train::transform(train::TensorDataset(image.expand({4, 1, 3, 3}), torch::zeros(4)), all);
  EXPECT_EQ(train::prepare_data_loader(dataset, {.batch_size = 4}).begin()->data.sizes(),
            (std::vector<std::int64_t>{4, 1, 1, 1}));
}

TEST(Transforms, RefuseWhatIsNoImage) {
  EXPECT_THAT(fault_of([] { to_float(torch::zeros({3, 4})); }), HasSubstr("[..., channels, height, width]"));
  EXPECT_THAT(fault_of([] { to_float(torch::zeros({1, 3, 4}, torch::kLong)); }), HasSubstr("this one Long"));
  EXPECT_THAT(fault_of([] { adjust_hue(torch::zeros({2, 3, 4}), 0.1); }), HasSubstr("one channel or three, and has 2"));
  EXPECT_THAT(fault_of([] { adjust_contrast(torch::zeros({3, 3, 4}), -1); }), HasSubstr("a factor of -1"));
  EXPECT_THAT(fault_of([] { resize(torch::zeros({3, 3, 4}), 0, 4); }), HasSubstr("a size of 0 x 4"));
  EXPECT_THAT(fault_of([] { Normalize{{0, 0}, {1, 1}}(torch::zeros({3, 2, 2})); }),
              HasSubstr("an image of 3 channels, with 2 means and 2 deviations"));
  EXPECT_THAT(fault_of([] { Normalize{{0}, {0}}(torch::zeros({3, 2, 2})); }), HasSubstr("a deviation of 0"));
  EXPECT_THAT(fault_of([] { Normalize{{0}, {1}}(torch::zeros({3, 2, 2}, torch::kUInt8)); }),
              HasSubstr("vision::to_float comes before"));
}

}  // namespace
}  // namespace cadre::vision
