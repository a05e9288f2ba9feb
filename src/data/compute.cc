#include "data/compute.h"

#include <arrow/array/concatenate.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include <mutex>

#include "cadre/error.h"
#include "data/adjacent_arrays.h"
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
  const Block& first = blocks.front();
  std::int64_t rows = 0;
  for (const Block& block : blocks) {
    if (!block->schema()->Equals(*first->schema(), false))
      throw DatasetError(fmt::format("cannot join rows with different columns: {{{}}} and {{{}}}",
                                     first->schema()->ToString(), block->schema()->ToString()));
    rows += block->num_rows();
  }
  arrow::ArrayVector columns;
  for (int column = 0; column < first->num_columns(); ++column) {
    arrow::ArrayVector parts;
    for (const Block& block : blocks) parts.push_back(block->column(column));
    auto joined = join_adjacent(parts);
    columns.push_back(joined != nullptr ? std::move(joined)
                                        : checked(arrow::Concatenate(parts, pool), "cannot join rows"));
  }
  return arrow::RecordBatch::Make(first->schema(), rows, std::move(columns));
}

std::int64_t bytes_of(const Block& block) {
  // Types whose ranges are unknown count with all their buffers.
  const auto referenced = arrow::util::ReferencedBufferSize(*block);
  return referenced.ok() ? *referenced : arrow::util::TotalBufferSize(*block);
}

}  // namespace cadre::data
