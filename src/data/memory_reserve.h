// A pool of buffers whose memory is used again when the arrays in it are gone.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace cadre::data {

// Lends buffers, and keeps the memory of a few that were given back for the next ones: fresh memory costs as much time
// as a copy, because the system clears it. Used by many threads; outlives its buffers.
class MemoryReserve : public std::enable_shared_from_this<MemoryReserve> {
 public:
  explicit MemoryReserve(arrow::MemoryPool* pool) : pool_(pool) {}

  // Returns a buffer of this size, with undefined contents. A shared_ptr must own this object.
  std::shared_ptr<arrow::MutableBuffer> lend(std::int64_t bytes);

 private:
  using Memory = std::unique_ptr<arrow::Buffer>;
  class Lent;

  void give_back(Memory memory);

  arrow::MemoryPool* pool_;
  std::mutex mutex_;
  std::vector<Memory> kept_;
};

}  // namespace cadre::data
