// Rows grouped by keys: aggregates of the groups, and groups as batches.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/aggregates.h"
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

// A row for each group, in the order of their first rows: the keys, then the aggregates.
class Grouped final : public BlockStream {
 public:
  Grouped(std::unique_ptr<BlockStream> input, GroupBy group_by, std::int64_t limit_bytes,
          std::shared_ptr<OperatorProgress> progress)
      : input_(std::move(input)),
        group_by_(std::move(group_by)),
        limit_bytes_(limit_bytes),
        progress_(std::move(progress)) {}
  ~Grouped() override { progress_->hold(-held_bytes_); }
  Grouped(const Grouped&) = delete;
  Grouped& operator=(const Grouped&) = delete;

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  Block read_all();
  void hold(std::int64_t bytes);

  std::unique_ptr<BlockStream> input_;
  const GroupBy group_by_;
  const std::int64_t limit_bytes_;
  const std::shared_ptr<OperatorProgress> progress_;
  Block groups_;  // null: not read yet
  std::int64_t at_ = 0;
  std::int64_t held_bytes_ = 0;
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
