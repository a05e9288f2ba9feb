#include "data/batch_memory.h"

#include <arrow/buffer.h>

#include "data/memory_reserve.h"

namespace cadre::data {

BatchMemory::BatchMemory(std::int64_t batch_rows, std::int64_t most_bytes, arrow::MemoryPool* pool)
    : batch_rows_(batch_rows), most_bytes_(most_bytes), reserve_(std::make_shared<MemoryReserve>(pool)) {}

std::shared_ptr<arrow::MutableBuffer> BatchMemory::place(std::int64_t row, std::int64_t rows, std::int64_t row_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.try_emplace(row / batch_rows_).first;
  Batch& batch = found->second;
  if (batch.memory == nullptr) batch.memory = reserve_->lend(batch_rows_ * row_bytes);
  auto place = std::make_shared<arrow::MutableBuffer>(batch.memory, row % batch_rows_ * row_bytes, rows * row_bytes);
  batch.given_rows += rows;
  if (batch.given_rows == batch_rows_) batches_.erase(found);
  return place;
}

}  // namespace cadre::data
