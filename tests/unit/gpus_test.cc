#include "run/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace cadre::run {
namespace {

class Gpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* devices = std::getenv(kName)) before_ = devices;
  }
  void TearDown() override { before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName); }

  static constexpr const char* kName = "CUDA_VISIBLE_DEVICES";
  std::optional<std::string> before_;
};

TEST_F(Gpus, AreThoseThatTheProcessIsAllowed) {
  for (const auto& [devices, count] :
       {std::pair{"", 0}, {"0", 1}, {"3,1", 2}, {"GPU-4f1a, GPU-77", 2}, {"-1", 0}, {"2,-1,3", 1}, {"1,", 1}}) {
    ::setenv(kName, devices, 1);
    EXPECT_EQ(count_gpus(), count) << devices;
  }
}

TEST_F(Gpus, AreNumberedAmongTheAllowedOnes) {
  ::setenv(kName, "3,GPU-77,5", 1);
  EXPECT_EQ(visible_devices({0, 1}), "3,GPU-77");
  EXPECT_EQ(visible_devices({2}), "5");
  EXPECT_EQ(visible_devices({}), "");
  ::unsetenv(kName);
  EXPECT_EQ(visible_devices({0, 2}), "0,2");
}

}  // namespace
}  // namespace cadre::run
