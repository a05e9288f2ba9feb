// Claims of GPUs by the ranks of a group. Needs no GPU: ranks only say which one they see.
#include "worker/gpu_claims.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "shared_store.h"

namespace cadre::worker {
namespace {

using std::chrono::milliseconds;

struct Claim {
  int node = 0;
  std::string gpu;
};

// Returns what each rank, in a thread of its own, learns of the claims.
std::vector<std::string> obstacles(const std::vector<Claim>& claims) {
  test_support::SharedStore store;
  std::vector<std::future<std::string>> ranks;
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    const GroupPlace place{.world_rank = static_cast<int>(rank),
                           .world_size = static_cast<int>(claims.size()),
                           .node_rank = claims[rank].node};
    ranks.push_back(std::async(std::launch::async, [&store, place, gpu = claims[rank].gpu] {
      return claim_gpu(store, place, gpu, std::chrono::minutes(1));
    }));
  }
  std::vector<std::string> texts;
  for (std::future<std::string>& rank : ranks) texts.push_back(rank.get());
  return texts;
}

TEST(GpuClaims, MeetNoObstacleWithAGpuForEachRank) {
  const std::vector<std::string> none(4);
  EXPECT_EQ(obstacles({{0, "0"}, {0, "1"}, {1, "0"}, {1, "GPU-4f1a"}}), none);
}

TEST(GpuClaims, TellAllRanksThatTwoOfThemShareOne) {
  const std::vector<std::string> texts = obstacles({{0, "0"}, {1, "0"}, {1, "0"}});
  const std::string one_first = "ranks 1 and 2 share a GPU of node 1";
  const std::string two_first = "ranks 2 and 1 share a GPU of node 1";
  EXPECT_TRUE(texts[0] == one_first || texts[0] == two_first) << texts[0];
  EXPECT_EQ(texts, std::vector<std::string>(3, texts[0]));
}

TEST(GpuClaims, TellAllRanksThatOneHasNone) {
  EXPECT_EQ(obstacles({{0, "0"}, {0, ""}}), std::vector<std::string>(2, "rank 1 has no GPU"));
}

TEST(GpuClaims, DoNotWaitForeverForARankThatMakesNone) {
  test_support::SharedStore store;
  EXPECT_THROW(claim_gpu(store, {.world_rank = 0, .world_size = 2}, "0", milliseconds(20)), Error);
}

}  // namespace
}  // namespace cadre::worker
