// Mixed precision, and reproducible results.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cadre/train_torch.h"

namespace cadre::train {
namespace {

torch::Dtype type_of_product() {
  const auto options = torch::TensorOptions(get_device());
  return torch::mm(torch::ones({2, 2}, options), torch::ones({2, 2}, options)).scalar_type();
}

TEST(Autocast, ComputesInTheShorterTypeWhileItLives) {
  EXPECT_EQ(type_of_product(), torch::kFloat);
  {
    const auto mixed_precision = autocast(torch::kBFloat16);
    EXPECT_EQ(type_of_product(), torch::kBFloat16);
    {
      const auto other = autocast(torch::kHalf);
      EXPECT_EQ(type_of_product(), torch::kHalf);
    }
    EXPECT_EQ(type_of_product(), torch::kBFloat16);
  }
  EXPECT_EQ(type_of_product(), torch::kFloat);
}

TEST(Autocast, RefusesOtherTypesAndChangesNothing) {
  EXPECT_THROW(static_cast<void>(autocast(torch::kDouble)), InvalidArgument);
  EXPECT_EQ(type_of_product(), torch::kFloat);
}

TEST(EnableReproducibility, SeedsAndAsksForDeterministicAlgorithms) {
  const bool was_deterministic = at::globalContext().deterministicAlgorithms();
  enable_reproducibility(5);
  const torch::Tensor first = torch::rand(3);
  const int first_of_c = std::rand();
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  enable_reproducibility(5);
  EXPECT_TRUE(torch::equal(torch::rand(3), first));
  EXPECT_EQ(std::rand(), first_of_c);
  enable_reproducibility(6);
  EXPECT_FALSE(torch::equal(torch::rand(3), first));
  at::globalContext().setDeterministicAlgorithms(was_deterministic, false);
}

}  // namespace
}  // namespace cadre::train
