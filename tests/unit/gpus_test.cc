#include "resources/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "resources/gpu_kinds.h"
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
  for (const auto& [devices, count] : {std::pair{"", 0},
                                       {"0", 1},
                                       {"3,1", 2},
                                       {"GPU-4f1a, GPU-77", 2},
                                       {"MIG-5c89", 1},
                                       {"-1", 0},
                                       {"2,-1,3", 1},
                                       {"1,", 1},
                                       {"NoDevFiles", 0}}) {
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

TEST_F(Gpus, OfANodeAreNamedAsTheyAreThere) {
  ::unsetenv(kName);
  const std::vector<Node> nodes{{.id = 0}, {.id = 1, .gpu_names = {"GPU-7", "GPU-8"}}};
  const Resources machine{.gpus = 2};
  EXPECT_EQ(visible_devices(machine, {.node = 0, .gpus = {1}}, nodes), "1");
  EXPECT_EQ(visible_devices(machine, {.node = 1, .gpus = {1}}, nodes), "GPU-8");
  EXPECT_EQ(visible_devices(machine, {.node = 1, .gpus = {}}, nodes), "") << "a worker without GPUs sees none";
  EXPECT_EQ(visible_devices(Resources{.gpus = 0}, {.node = 0, .gpus = {}}, nodes), std::nullopt);
}

// The files of a driver with GPUs of these models; the last are not given to this process.
class Driver {
 public:
  explicit Driver(const std::vector<std::string>& models, std::size_t not_given = 0) {
    std::filesystem::create_directories(folder_ / "dev");
    for (std::size_t i = 0; i < models.size(); ++i) {
      const std::string number = std::to_string(i);
      const std::filesystem::path directory = folder_ / "driver" / "gpus" / ("0000:0" + number + ":00.0");
      std::filesystem::create_directories(directory);
      const std::string minor = std::to_string(models.size() - 1 - i);
      std::ofstream(directory / "information") << "Model: \t\t " << models[i] << "\nIRQ:   \t\t 42\nGPU UUID: \t GPU-"
                                               << number << "abc\nDevice Minor: \t " << minor << "\n";
      if (i + not_given < models.size()) std::ofstream(folder_ / "dev" / ("nvidia" + minor)) << "";
    }
  }

  std::string types() const { return accelerator_types(files()); }
  std::vector<std::string> uuids() const { return uuids_of_several_kinds(files()); }

 private:
  GpuFiles files() const { return {.driver = folder_ / "driver", .devices = folder_ / "dev"}; }
  test_support::TemporaryDirectory folder_;
};

class AcceleratorTypes : public Gpus {};

TEST_F(AcceleratorTypes, AreTheModelsFirstWordsWithADigit) {
  for (const auto& [model, type] : {std::pair{"NVIDIA H100 80GB HBM3", "H100"},
                                    {"NVIDIA A100-SXM4-80GB", "A100"},
                                    {"Tesla V100-SXM2-16GB", "V100"},
                                    {"NVIDIA GeForce RTX 4090", "4090"},
                                    {"TITAN Xp", "TITAN Xp"}}) {
    EXPECT_EQ(Driver({model}).types(), type);
  }
}

TEST_F(AcceleratorTypes, AreOneOrThatOfEachGpu) {
  ::unsetenv(kName);
  EXPECT_EQ(Driver({"Tesla T4", "Tesla T4"}).types(), "T4");
  EXPECT_EQ(Driver({"Tesla T4", "NVIDIA L4", "Tesla T4"}).types(), "T4,L4,T4") << "in the order of their places";
  EXPECT_EQ(Driver({"Tesla T4", "NVIDIA L4", "NVIDIA A10"}, 1).types(), "T4,L4") << "a container has two of them";
  EXPECT_EQ(Driver({}).types(), "");
}

TEST_F(AcceleratorTypes, AreThoseOfTheAllowedGpus) {
  const Driver driver({"Tesla T4", "NVIDIA L4", "NVIDIA A10"});
  ::setenv(kName, "GPU-2abc,GPU-0", 1);
  EXPECT_EQ(driver.types(), "A10,T4");
  ::setenv(kName, "GPU-1", 1);
  EXPECT_EQ(driver.types(), "L4");
  ::setenv(kName, "2,0", 1);
  EXPECT_EQ(driver.types(), "") << "CUDA numbers the fastest first";
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  EXPECT_EQ(driver.types(), "A10,T4");
  ::setenv(kName, "7", 1);
  EXPECT_EQ(driver.types(), "");
  ::unsetenv("CUDA_DEVICE_ORDER");
  EXPECT_EQ(Driver({"Tesla T4", "Tesla T4"}).types(), "T4") << "one kind needs no order";
}

TEST_F(AcceleratorTypes, OfSeveralKindsGoWithUuids) {
  EXPECT_EQ(Driver({"Tesla T4", "NVIDIA L4"}).uuids(), (std::vector<std::string>{"GPU-0abc", "GPU-1abc"}));
  EXPECT_EQ(Driver({"Tesla T4", "Tesla T4"}).uuids(), std::vector<std::string>());
}

TEST(GpuKinds, BelongToEachGpuOrToAll) {
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds_of_gpus({.gpus = 2.5, .accelerator_type = "A100"}), (Kinds{"A100", "A100", "A100"}));
  EXPECT_EQ(kinds_of_gpus({.gpus = 2, .accelerator_type = "A100,A10G"}), (Kinds{"A100", "A10G"}));
  EXPECT_EQ(kinds_of_gpus({.gpus = 2}), (Kinds{"", ""}));
  EXPECT_EQ(fault_of_kinds({.gpus = 2, .accelerator_type = "A100,A10G"}), "");
  EXPECT_EQ(fault_of_kinds({.gpus = 3, .accelerator_type = "A100,A10G"}),
            "\"A100,A10G\" has 2 kinds, and there are 3 GPUs: name one kind, or that of each GPU");
  EXPECT_EQ(fault_of_kinds({.gpus = 2, .accelerator_type = "A100,"}), "\"A100,\" has a kind without a name");
  const Resources machine{.gpus = 4, .accelerator_type = "A100,A100,A10G,A10G"};
  EXPECT_EQ(with_kinds({.gpus = 2}, machine, {1, 2}).accelerator_type, "A100,A10G");
  EXPECT_EQ(with_kinds({.gpus = 1}, machine, {2, 3}).accelerator_type, "A10G");
  EXPECT_EQ(with_kinds({.gpus = 0}, machine, {}).accelerator_type, "");
}

}  // namespace
}  // namespace cadre::resources
