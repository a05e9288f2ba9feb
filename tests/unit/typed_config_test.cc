#include "cadre/typed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/tune/search_space.h"
#include "support/message_of.h"

namespace cadre::tune {
namespace {

using cadre::test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Optimizer {
  std::string type = "sgd";
  double momentum = 0.9;
};

struct Hyperparameters {
  double lr = 0.1;
  std::int64_t width = 3;
  bool bias = true;
  std::vector<double> betas = {};
  Optimizer optimizer = {};
};

TEST(TypedConfig, TheNamesAreThoseOfTheMembers) {
  EXPECT_THAT(cadre::detail::member_names<Hyperparameters>(), ElementsAre("lr", "width", "bias", "betas", "optimizer"));
  EXPECT_EQ(field<&Hyperparameters::width>(3).first, "width");
  EXPECT_EQ(field<&Optimizer::type>("adam").first, "type");
}

TEST(TypedConfig, ValuesReachTheirMembersAndDefaultsStay) {
  const auto made = from_config<Hyperparameters>(
      {{"width", 8}, {"betas", list(0.5, 1)}, {"optimizer", {{"type", "adam"}}}, {"other", 1}});
  EXPECT_EQ(made.lr, 0.1);
  EXPECT_EQ(made.width, 8);
  EXPECT_TRUE(made.bias);
  EXPECT_THAT(made.betas, ElementsAre(0.5, 1.0));
  EXPECT_EQ(made.optimizer.type, "adam");
  EXPECT_EQ(made.optimizer.momentum, 0.9);
}

TEST(TypedConfig, AStructBecomesTheConfigThatItIsReadFrom) {
  const Hyperparameters settings{.lr = 1, .width = -8, .bias = false, .betas = {0.5}, .optimizer = {.type = "adam"}};
  const Config config = to_config(settings);
  EXPECT_EQ(config, Config({{"lr", 1.0},
                            {"width", -8},
                            {"bias", false},
                            {"betas", list(0.5)},
                            {"optimizer", {{"type", "adam"}, {"momentum", 0.9}}}}));
  EXPECT_EQ(to_config(from_config<Hyperparameters>(config)), config);
}

struct Numbers {
  std::uint64_t seed = 0;
  std::vector<std::vector<float>> rows = {};
};

TEST(TypedConfig, ANumberThatNoConfigHoldsIsRefused) {
  EXPECT_EQ(to_config(Numbers{.seed = 7, .rows = {{0.5F}, {}}}),
            Config({{"seed", 7}, {"rows", list(list(0.5), List())}}));
  EXPECT_THROW(to_config(Numbers{.seed = UINT64_MAX}), InvalidArgument);
}

struct WithData {
  Reference data = {};
};

TEST(TypedConfig, AMemberMayBeAReference) {
  const Reference reference{"object", "1"};
  EXPECT_EQ(from_config<WithData>({{"data", reference}}).data, reference);
  EXPECT_THAT(message_of<InvalidArgument>([] { from_config<WithData>({{"data", 1}}); }), HasSubstr("key \"data\": "));
}

TEST(TypedConfig, AValueOfAnotherTypeIsNamedWithItsKey) {
  const auto fault = [](const Config& config) {
    return message_of<InvalidArgument>([&] { from_config<Hyperparameters>(config); });
  };
  EXPECT_THAT(fault({{"width", 0.5}}), HasSubstr("key \"width\": "));
  EXPECT_THAT(fault({{"optimizer", 3}}), HasSubstr("key \"optimizer\": the value is 3, not a dictionary"));
  EXPECT_THAT(fault({{"optimizer", {{"type", 3}}}}), HasSubstr("key \"optimizer/type\": "));
}

}  // namespace
}  // namespace cadre::tune
