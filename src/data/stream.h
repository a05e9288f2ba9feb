// Streams of blocks, which are made on request.
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
  // Returns the next block, which has rows; empty at the end. Called by one thread at a time. Throws the error that
  // occurred when the block was made, and must not be called after that.
  virtual std::optional<Block> next() = 0;
  // Makes waiting and later calls of next() throw Cancelled. Called from any thread.
  virtual void cancel() = 0;
};

// Thrown after cancel(). Does not leave an execution.
struct Cancelled {};

// Blocks of `rows` rows each; the last may have fewer.
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
  Block rest_;  // rest of the last input block; null: none
};

// A range of a stream's rows. Does not read beyond it.
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

// Some of a stream's rows, each with the same probability. The choice depends only on the seed and the row's place.
class Sampled final : public BlockStream {
 public:
  Sampled(std::unique_ptr<BlockStream> input, const Sample& sample, arrow::MemoryPool* pool)
      : input_(std::move(input)), sample_(sample), pool_(pool) {}

  std::optional<Block> next() override;
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  Sample sample_;
  arrow::MemoryPool* pool_;
  std::uint64_t row_ = 0;
};

// Returns the columns of several datasets side by side. A name that is there already gets a suffix: "_1", "_2".
std::shared_ptr<arrow::Schema> zipped_schema(const std::vector<std::shared_ptr<arrow::Schema>>& schemas);

// Several streams with equally many rows, side by side. Throws InvalidArgument where one ends before another.
class Zipped final : public BlockStream {
 public:
  explicit Zipped(std::vector<std::unique_ptr<BlockStream>> inputs) : rests_(inputs.size()) {
    inputs_ = std::move(inputs);
  }

  std::optional<Block> next() override;
  void cancel() override;

 private:
  std::vector<std::unique_ptr<BlockStream>> inputs_;
  std::vector<Block> rests_;  // of each input; null: none
  std::shared_ptr<arrow::Schema> schema_;
  std::int64_t rows_ = 0;
};

// Several streams with the same columns, one after the other.
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
