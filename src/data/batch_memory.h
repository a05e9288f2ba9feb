// Memory that several tasks fill with the rows of one batch, which then need not be copied together.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace cadre::data {

class MemoryReserve;

// Gives out the places of consecutive rows of a fixed size. Memory of batches that nobody uses any more is used again.
// Used by many threads.
class BatchMemory {
 public:
  // `batch_rows`: above 0; `most_bytes`: of one batch.
  BatchMemory(std::int64_t batch_rows, std::int64_t most_bytes, arrow::MemoryPool* pool);

  // Returns true if batches of such rows fit.
  bool fits(std::int64_t row_bytes) const { return row_bytes > 0 && row_bytes <= most_bytes_ / batch_rows_; }
  // Returns how many rows from `row` on are in the same batch.
  std::int64_t rows_left(std::int64_t row) const { return batch_rows_ - row % batch_rows_; }
  // Returns the place of `rows` rows, at most rows_left(row), of the same size in all calls. Each row is given out
  // once.
  std::shared_ptr<arrow::MutableBuffer> place(std::int64_t row, std::int64_t rows, std::int64_t row_bytes);

 private:
  struct Batch {
    std::shared_ptr<arrow::MutableBuffer> memory = {};
    std::int64_t given_rows = 0;
  };

  const std::int64_t batch_rows_;
  const std::int64_t most_bytes_;
  const std::shared_ptr<MemoryReserve> reserve_;
  std::mutex mutex_;
  std::map<std::int64_t, Batch> batches_;  // by number; those of which not all rows were given out
};

}  // namespace cadre::data
