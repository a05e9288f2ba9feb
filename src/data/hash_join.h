// Rows of two streams that have equal keys.
#pragma once

#include <arrow/type_fwd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/keys.h"
#include "data/partitions.h"
#include "data/progress.h"
#include "data/stream.h"

namespace cadre::data {

// A column of the result of a join.
struct JoinedColumn {
  int left = -1;   // index of the left column; -1: none
  int right = -1;  // index of the right column; -1: none. With both, the left value where there is one.
  std::shared_ptr<arrow::Field> field = {};
};

// Returns the columns of the result of a join. Throws InvalidArgument for missing key columns, keys of different types,
// and names that are there twice.
std::vector<JoinedColumn> columns_of(const Join& join, const arrow::Schema& left, const arrow::Schema& right);

// Holds the right rows in memory, and reads the left ones as a stream. If the right rows take more than the limit, both
// are put on disk, in parts with different keys, which are joined one after the other. The rows are in the order of the
// left ones, of equal ones in that of the right ones; at the end come right rows without left ones, in their order.
class HashJoined final : public BlockStream {
 public:
  struct Options {
    Join join = {};  // not a right semi or anti join
    std::int64_t limit_bytes = 0;
    std::int64_t block_bytes = 0;
    arrow::MemoryPool* pool = nullptr;
    std::shared_ptr<arrow::Schema> left_schema = {};   // null: unknown
    std::shared_ptr<arrow::Schema> right_schema = {};  // null: unknown
    std::uint64_t depth = 0;  // above 0: of a part of the rows; the result is in any order, and not counted
  };
  HashJoined(std::unique_ptr<BlockStream> left, std::unique_ptr<BlockStream> right, Options options,
             std::shared_ptr<OperatorProgress> progress);
  ~HashJoined() override { progress_->hold(-held_bytes_); }
  HashJoined(const HashJoined&) = delete;
  HashJoined& operator=(const HashJoined&) = delete;

  std::optional<Block> next() override;
  void cancel() override;

 private:
  void hold(std::int64_t bytes);
  class Parts;

  // Reads the right rows, all of them, or those that fit.
  void read_right();
  // Puts all rows on disk, beginning with right ones that were read, and makes a stream of their join.
  std::unique_ptr<BlockStream> divide(std::vector<Block> right);
  // Puts the rest of a stream into partitions by its keys; returns its columns, null without rows.
  std::shared_ptr<arrow::Schema> put_on_disk(BlockStream& rows, std::vector<Block> read, const Names& keys,
                                             const char* number_column, Partitions& parts) const;
  void number_keys();
  // Reads a left block and finds its keys; returns false at the end.
  bool read_left();
  void know_left(const std::shared_ptr<arrow::Schema>& schema);
  // Returns the next rows of the left block; empty if there are no more.
  std::optional<Block> next_of_left();
  std::optional<Block> rest_of_right();
  Block make(const std::vector<std::int64_t>& left, const std::vector<std::int64_t>& right) const;

  std::unique_ptr<BlockStream> left_;
  std::unique_ptr<BlockStream> right_;
  Options options_;
  const std::shared_ptr<OperatorProgress> progress_;
  std::vector<JoinedColumn> columns_;
  std::shared_ptr<arrow::Schema> schema_;  // of the result; null: not known yet

  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<BlockStream> divided_;  // null: the right rows are in memory
  bool has_read_right_ = false;
  Block right_rows_;                         // null: there are no right rows and their columns are unknown
  std::unique_ptr<KeyNumbers> numbers_;      // of the keys of right rows; null: there are none
  std::vector<std::int64_t> begins_;         // of each key's rows in places_, and the end
  std::vector<std::int64_t> places_;         // right rows, by key
  std::vector<bool> has_left_;               // of each key: a left row has it
  std::vector<std::int64_t> keys_of_right_;  // the number of each right row's key; -1: it has a null
  std::int64_t held_bytes_ = 0;

  Block left_rows_;  // null: none
  std::shared_ptr<arrow::UInt32Array> left_numbers_;
  std::int64_t left_row_ = 0;    // next in left_rows_
  std::int64_t next_place_ = 0;  // of this left row's right rows: how many were returned
  bool left_is_over_ = false;
  std::int64_t rest_at_ = 0;  // right row
};

}  // namespace cadre::data
