// All rows of a stream in the order of some columns.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/progress.h"
#include "data/stream.h"

namespace cadre::data {

// Throws InvalidArgument unless all columns exist and their types have an order.
void require_sort_keys(const arrow::Schema& schema, const std::vector<SortKey>& keys);

// Returns the order of a block's rows: indices of all rows, those with equal keys in their order in the block. Nulls
// come last, and NaN before them, in both directions.
std::shared_ptr<arrow::Array> sorted_indices(const Block& block, const std::vector<SortKey>& keys,
                                             arrow::MemoryPool* pool);

// Rows with equal keys keep their order. Rows beyond the limit are stored on disk, in files that are each in order, and
// merged from there.
class Sorted final : public BlockStream {
 public:
  struct Options {
    std::vector<SortKey> keys = {};
    std::int64_t limit_bytes = 0;
    std::int64_t block_bytes = 0;
    arrow::MemoryPool* pool = nullptr;
  };
  Sorted(std::unique_ptr<BlockStream> input, Options options, std::shared_ptr<OperatorProgress> progress);
  ~Sorted() override;

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  class InMemory;
  class Merged;
  class Spill;

  void read_all();
  void spill();

  std::unique_ptr<BlockStream> input_;
  const Options options_;
  const std::shared_ptr<OperatorProgress> progress_;
  bool has_read_ = false;
  std::vector<Block> blocks_;  // to be sorted next
  std::int64_t held_bytes_ = 0;
  std::unique_ptr<Spill> spill_;         // null: everything is in memory
  std::unique_ptr<BlockStream> sorted_;  // null: there are no rows
};

}  // namespace cadre::data
