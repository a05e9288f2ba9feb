// Divides the elements of several tensors among ranks.
#include "torch/distributed/flat_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace cadre::distributed {
namespace {

TEST(FlatLayout, EveryElementIsOnOneRankInOrder) {
  const std::vector<std::int64_t> sizes{1, 0, 1000, 17, 16, 3, 0, 64};
  for (const int ranks : {1, 2, 3, 7, 100}) {
    const FlatLayout layout(sizes, ranks);
    EXPECT_EQ(layout.size(), layout.part_size() * ranks);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ElementRange part = layout.part_of(i, rank);
        if (part.size() == 0) continue;
        EXPECT_EQ(part.begin, end) << i << " " << rank;
        end = part.end;
        EXPECT_GE(layout.begin_of(i) + part.begin, layout.part_size() * rank);
        EXPECT_LE(layout.begin_of(i) + part.end, layout.part_size() * (rank + 1));
      }
      EXPECT_EQ(end, sizes[i]) << i << " on " << ranks;
    }
  }
}

TEST(FlatLayout, TensorsBeginAtMultiplesOfSixteenElementsAndDoNotOverlap) {
  const FlatLayout layout(std::array<std::int64_t, 4>{5, 16, 17, 1}, 2);
  EXPECT_EQ(layout.begin_of(0), 0);
  EXPECT_EQ(layout.begin_of(1), 16);
  EXPECT_EQ(layout.begin_of(2), 32);
  EXPECT_EQ(layout.begin_of(3), 64);
  EXPECT_EQ(layout.part_size(), 48);
}

}  // namespace
}  // namespace cadre::distributed
