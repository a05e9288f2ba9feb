#include "data/memory_reserve.h"

#include <arrow/memory_pool.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {

class MemoryReserve::Lent final : public arrow::MutableBuffer {
 public:
  Lent(std::shared_ptr<MemoryReserve> reserve, Memory memory, std::int64_t bytes)
      : arrow::MutableBuffer(memory->mutable_data(), bytes), reserve_(std::move(reserve)), memory_(std::move(memory)) {}
  ~Lent() override { reserve_->give_back(std::move(memory_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  std::shared_ptr<MemoryReserve> reserve_;
  Memory memory_;
};

std::shared_ptr<arrow::MutableBuffer> MemoryReserve::lend(std::int64_t bytes) {
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    // The memory that was used last may still be in the cache.
    const auto found =
        std::find_if(kept_.rbegin(), kept_.rend(), [&](const Memory& kept) { return kept->size() >= bytes; });
    if (found != kept_.rend()) {
      memory = std::move(*found);
      kept_.erase(std::next(found).base());
    }
  }
  if (memory == nullptr) memory = checked(arrow::AllocateBuffer(bytes, pool_), "there is no memory for a batch");
  return std::make_shared<Lent>(shared_from_this(), std::move(memory), bytes);
}

void MemoryReserve::give_back(Memory memory) {
  constexpr std::size_t kMostKept = 8;  // no more than are in use at a time
  const std::lock_guard lock(mutex_);
  if (kept_.size() < kMostKept) kept_.push_back(std::move(memory));
}

}  // namespace cadre::data
