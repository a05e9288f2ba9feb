// All rows of a stream in random order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/progress.h"
#include "data/sort.h"
#include "data/stream.h"

namespace cadre::data {

// Each row gets a random number determined by the seed and its place, and rows are sorted by these numbers: the order
// does not depend on how much fits into memory.
class Shuffled final : public BlockStream {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t limit_bytes = 0;
    std::int64_t block_bytes = 0;
    arrow::MemoryPool* pool = nullptr;
  };
  Shuffled(std::unique_ptr<BlockStream> input, const Options& options, std::shared_ptr<OperatorProgress> progress);

  std::optional<Block> next() override;
  void cancel() override { sorted_.cancel(); }

 private:
  Sorted sorted_;  // by the last column, which has the random numbers
};

}  // namespace cadre::data
