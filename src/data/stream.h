// Blocks one after the other, made by whoever is asked for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/plan.h"

namespace cadre::data {

class BlockStream {
 public:
  virtual ~BlockStream() = default;
  // The next block, which has rows; empty at the end. One thread at a time. Throws what making it has thrown; nothing
  // more is asked for then.
  virtual std::optional<Block> next() = 0;
  // From any thread: whoever waits in next() is let go with Cancelled, and so is everybody later.
  virtual void cancel() = 0;
};

// Thrown by what was cancelled. Nobody outside an execution sees it.
struct Cancelled {};

// Blocks of `rows` rows each, the last one may have fewer.
class Rebatched final : public BlockStream {
 public:
  Rebatched(std::unique_ptr<BlockStream> input, std::int64_t rows, arrow::MemoryPool* pool)
      : input_(std::move(input)), rows_(rows), pool_(pool) {}

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  std::int64_t rows_;
  arrow::MemoryPool* pool_;
  Block rest_;  // of the block that was cut last; null: none
};

// Some rows of a stream, which is not read any further than that.
class Sliced final : public BlockStream {
 public:
  Sliced(std::unique_ptr<BlockStream> input, const Slice& slice)
      : input_(std::move(input)), skip_(slice.skip), left_(slice.count) {}

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  std::int64_t skip_;
  std::optional<std::int64_t> left_;
};

// Streams of the same columns, one behind the other.
class Concatenated final : public BlockStream {
 public:
  explicit Concatenated(std::vector<std::unique_ptr<BlockStream>> inputs) : inputs_(std::move(inputs)) {}

  std::optional<Block> next() override;
  void cancel() override;

 private:
  std::vector<std::unique_ptr<BlockStream>> inputs_;
  std::size_t at_ = 0;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace cadre::data
