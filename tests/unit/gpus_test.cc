#include "resources/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace cadre::resources {
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

std::string kind_of_driver(const std::vector<std::string>& models) {
  const test_support::TemporaryDirectory driver;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto directory = driver / "gpus" / ("0000:0" + std::to_string(i) + ":00.0");
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "information") << "Model: \t\t " << models[i] << "\nIRQ:   \t\t 42\n";
  }
  return accelerator_type(driver.path());
}

TEST(AcceleratorType, IsTheModelsFirstWordWithADigit) {
  EXPECT_EQ(kind_of_driver({"NVIDIA H100 80GB HBM3"}), "H100");
  EXPECT_EQ(kind_of_driver({"NVIDIA A100-SXM4-80GB"}), "A100");
  EXPECT_EQ(kind_of_driver({"Tesla V100-SXM2-16GB"}), "V100");
  EXPECT_EQ(kind_of_driver({"NVIDIA GeForce RTX 4090"}), "4090");
  EXPECT_EQ(kind_of_driver({"TITAN Xp"}), "TITAN Xp");
}

TEST(AcceleratorType, IsThatOfAllGpus) {
  EXPECT_EQ(kind_of_driver({"Tesla T4", "Tesla T4"}), "T4");
  EXPECT_EQ(kind_of_driver({"Tesla T4", "NVIDIA L4"}), "");
  EXPECT_EQ(kind_of_driver({}), "");
}

}  // namespace
}  // namespace cadre::resources
