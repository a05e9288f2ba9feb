#include "data/compute.h"

#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>

#include <mutex>

#include "data/arrow_status.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;

cp::ExecContext one_thread(arrow::MemoryPool* pool) {
  cp::ExecContext context(pool);
  context.set_use_threads(false);
  return context;
}

}  // namespace

void initialise_compute() {
  static std::once_flag once;
  std::call_once(once, [] { check(cp::Initialize(), "Arrow's kernels cannot be used"); });
}

Block keep_rows(const Block& block, const std::shared_ptr<arrow::Array>& mask, arrow::MemoryPool* pool) {
  initialise_compute();
  cp::ExecContext context = one_thread(pool);
  const cp::FilterOptions options(cp::FilterOptions::DROP);
  return checked(cp::Filter(block, mask, options, &context), "cannot filter rows").record_batch();
}

Block take_rows(const Block& block, const std::shared_ptr<arrow::Array>& indices, arrow::MemoryPool* pool) {
  initialise_compute();
  cp::ExecContext context = one_thread(pool);
  return checked(cp::Take(block, indices, cp::TakeOptions::NoBoundsCheck(), &context), "cannot reorder rows")
      .record_batch();
}

Block join(std::span<const Block> blocks, arrow::MemoryPool* pool) {
  if (blocks.size() == 1) return blocks.front();
  return checked(arrow::ConcatenateRecordBatches({blocks.begin(), blocks.end()}, pool), "cannot join rows");
}

std::int64_t bytes_of(const Block& block) {
  // Types whose ranges are unknown count with all their buffers.
  const auto referenced = arrow::util::ReferencedBufferSize(*block);
  return referenced.ok() ? *referenced : arrow::util::TotalBufferSize(*block);
}

}  // namespace cadre::data
