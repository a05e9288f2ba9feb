// Arrow's kernels, on blocks.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <span>

#include "data/plan.h"

namespace cadre::data {

// Registers the kernels; before any of them is called.
void initialise_compute();

// The rows where the mask is true. They lie in memory of their own.
Block keep_rows(const Block& block, const std::shared_ptr<arrow::Array>& mask, arrow::MemoryPool* pool);
// The rows with these indices, in this order.
Block take_rows(const Block& block, const std::shared_ptr<arrow::Array>& indices, arrow::MemoryPool* pool);
// Blocks of one schema behind each other; one block is not copied.
Block join(std::span<const Block> blocks, arrow::MemoryPool* pool);

// Bytes that the rows of a block take, without those of the buffers around them.
std::int64_t bytes_of(const Block& block);

}  // namespace cadre::data
