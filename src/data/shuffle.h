// All rows of a stream in random order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "data/progress.h"
#include "data/stream.h"

namespace cadre::data {

// Each row gets a random number determined by the seed and its place, and rows are sorted by these numbers: the order
// does not depend on how much fits into memory. Rows beyond the limit are stored in files, each for a range of
// numbers.
class Shuffled final : public BlockStream {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t limit_bytes = 0;
    std::int64_t block_bytes = 0;
    arrow::MemoryPool* pool = nullptr;
  };
  Shuffled(std::unique_ptr<BlockStream> input, const Options& options, std::shared_ptr<OperatorProgress> progress);
  ~Shuffled() override;

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  class Spill;

  void read_all();
  void sort_next();

  std::unique_ptr<BlockStream> input_;
  const Options options_;
  const std::shared_ptr<OperatorProgress> progress_;
  bool has_read_ = false;
  std::unique_ptr<Spill> spill_;  // null: everything is in memory
  std::vector<Block> blocks_;     // to be sorted next; the last column has the rows' places
  std::int64_t held_bytes_ = 0;
  std::int64_t rows_read_ = 0;
  std::int64_t bytes_read_ = 0;
  std::shared_ptr<arrow::Table> sorted_;  // null: none
  std::vector<std::int64_t> order_;       // of its rows
  std::size_t at_ = 0;                    // in order_
};

}  // namespace cadre::data
