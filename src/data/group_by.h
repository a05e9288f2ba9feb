// Rows grouped by keys: aggregates of the groups, and groups as batches.
#pragma once

#include <arrow/type_fwd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/aggregates.h"
#include "data/partitions.h"
#include "data/progress.h"
#include "data/stream.h"

namespace arrow::compute {
class RowSegmenter;
}  // namespace arrow::compute

namespace cadre::data {

// Returns the columns of the result of a GroupBy. Throws InvalidArgument for a missing column and for types that cannot
// be keys or aggregated.
std::shared_ptr<arrow::Schema> schema_of(const GroupBy& group_by, const arrow::Schema& input);

// Throws MemoryLimitError: an operator holds more than its share of the memory limit. `what` says what it holds,
// `advice` what to do besides more memory.
[[noreturn]] void throw_memory_limit(const std::string& what, std::int64_t held_bytes, std::int64_t share_bytes,
                                     const std::string& advice);

// A row for each group, in the order of their first rows: the keys, then the aggregates. When the groups take more than
// half the limit, those that are in memory stay there, and the rows of all others are put on disk, in parts, which are
// grouped one after the other. So are values that aggregates keep.
class Grouped final : public BlockStream {
 public:
  struct Options {
    GroupBy group_by = {};
    std::int64_t limit_bytes = 0;
    std::int64_t block_bytes = 0;
    arrow::MemoryPool* pool = nullptr;
    std::uint64_t depth = 0;  // above 0: of a part of the rows; groups are in any order, and their rows not counted
  };
  Grouped(std::unique_ptr<BlockStream> input, Options options, std::shared_ptr<OperatorProgress> progress);
  ~Grouped() override;
  Grouped(const Grouped&) = delete;
  Grouped& operator=(const Grouped&) = delete;

  std::optional<Block> next() override;
  void cancel() override;

 private:
  class Table;
  class Parts;
  struct DiskOptions;

  void read_all();
  void add(const Block& block);
  void hold(std::int64_t bytes);
  // Adds the rows whose groups are in memory, and puts the others on disk.
  void divide(const Block& block);
  std::unique_ptr<BlockStream> groups_on_disk();

  std::unique_ptr<BlockStream> input_;
  const Options options_;
  const std::shared_ptr<OperatorProgress> progress_;
  std::atomic<bool> cancelled_ = false;
  bool has_read_ = false;
  std::unique_ptr<Table> table_;  // null: there are no rows, or groups_ has been made
  Block groups_;                  // in memory; null: none, or all were returned
  std::int64_t at_ = 0;
  std::int64_t held_bytes_ = 0;
  std::unique_ptr<Partitions> others_;  // null: all groups are in memory
  std::int64_t row_ = 0;                // of the input
  std::unique_ptr<BlockStream> on_disk_;
};

// A block for each group of a stream in which rows with equal keys follow each other.
class GroupBlocks final : public BlockStream {
 public:
  GroupBlocks(std::unique_ptr<BlockStream> input, Names keys, std::int64_t limit_bytes, arrow::MemoryPool* pool);
  ~GroupBlocks() override;
  GroupBlocks(const GroupBlocks&) = delete;
  GroupBlocks& operator=(const GroupBlocks&) = delete;

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  std::optional<Block> finish_group();

  std::unique_ptr<BlockStream> input_;
  const Names keys_;
  const std::int64_t limit_bytes_;
  arrow::MemoryPool* pool_;
  std::unique_ptr<arrow::compute::RowSegmenter> segmenter_;
  std::vector<Block> group_;      // the parts of a group that may go on
  std::int64_t group_bytes_ = 0;  // of these
  std::vector<Block> segments_;   // of the last block, not looked at yet; the next one is last
};

}  // namespace cadre::data
