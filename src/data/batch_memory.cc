#include "data/batch_memory.h"

#include <arrow/buffer.h>
#include <arrow/memory_pool.h>

#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {

// Keeps the memory of a few batches for the next ones. Outlives the batches that it has made.
class BatchMemory::Reserve : public std::enable_shared_from_this<BatchMemory::Reserve> {
 public:
  explicit Reserve(arrow::MemoryPool* pool) : pool_(pool) {}

  std::shared_ptr<arrow::MutableBuffer> make(std::int64_t bytes);

 private:
  using Memory = std::unique_ptr<arrow::Buffer>;
  class Lent;

  void give_back(Memory memory) {
    constexpr std::size_t kMostKept = 8;  // no more than are in use at a time
    const std::lock_guard lock(mutex_);
    if (kept_.size() < kMostKept) kept_.push_back(std::move(memory));
  }

  arrow::MemoryPool* pool_;
  std::mutex mutex_;
  std::vector<Memory> kept_;
};

class BatchMemory::Reserve::Lent final : public arrow::MutableBuffer {
 public:
  Lent(std::shared_ptr<Reserve> reserve, Memory memory)
      : arrow::MutableBuffer(memory->mutable_data(), memory->size()),
        reserve_(std::move(reserve)),
        memory_(std::move(memory)) {}
  ~Lent() override { reserve_->give_back(std::move(memory_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  std::shared_ptr<Reserve> reserve_;
  Memory memory_;
};

std::shared_ptr<arrow::MutableBuffer> BatchMemory::Reserve::make(std::int64_t bytes) {
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      memory = std::move(kept_.back());
      kept_.pop_back();
    }
  }
  if (memory == nullptr) memory = checked(arrow::AllocateBuffer(bytes, pool_), "there is no memory for a batch");
  return std::make_shared<Lent>(shared_from_this(), std::move(memory));
}

BatchMemory::BatchMemory(std::int64_t batch_rows, std::int64_t most_bytes, arrow::MemoryPool* pool)
    : batch_rows_(batch_rows), most_bytes_(most_bytes), reserve_(std::make_shared<Reserve>(pool)) {}

std::shared_ptr<arrow::MutableBuffer> BatchMemory::place(std::int64_t row, std::int64_t rows, std::int64_t row_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.try_emplace(row / batch_rows_).first;
  Batch& batch = found->second;
  if (batch.memory == nullptr) batch.memory = reserve_->make(batch_rows_ * row_bytes);
  auto place = std::make_shared<arrow::MutableBuffer>(batch.memory, row % batch_rows_ * row_bytes, rows * row_bytes);
  batch.given_rows += rows;
  if (batch.given_rows == batch_rows_) batches_.erase(found);
  return place;
}

}  // namespace cadre::data
