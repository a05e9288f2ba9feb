// Tests of NCCL that need no GPU, in builds with NCCL; gpu_test.cc has the others.
#include "torch/distributed/nccl_backend.h"

#include <gtest/gtest.h>

#include <chrono>

#include "cadre/error.h"

#ifdef USE_C10D_NCCL
#include <nccl.h>
#include <torch/csrc/cuda/nccl.h>
#endif

namespace cadre::distributed {
namespace {

#ifdef USE_C10D_NCCL

// The header determines the layout of libtorch's process group.
TEST(NcclBackend, IsBuiltWithTheHeaderOfTheLibraryThatIsLoaded) {
  ASSERT_TRUE(has_nccl());
  const std::uint64_t loaded = torch::cuda::nccl::version();  // 16 bits each
  EXPECT_EQ(loaded >> 32, NCCL_MAJOR);
  EXPECT_EQ(loaded >> 16 & 0xffff, NCCL_MINOR);
}

#else

TEST(NcclBackend, IsRefusedWhereTheBuildHasNone) {
  EXPECT_FALSE(has_nccl());
  EXPECT_THROW(make_nccl_backend(nullptr, 0, 1, std::chrono::seconds(1)), InvalidArgument);
}

#endif

}  // namespace
}  // namespace cadre::distributed
