// Arrow's compute kernels on blocks.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <span>

#include "data/plan.h"

namespace cadre::data {

// Registers the kernels; must precede all other calls of them.
void initialise_compute();

// Returns the rows where the mask is true, as a copy.
Block keep_rows(const Block& block, const std::shared_ptr<arrow::Array>& mask, arrow::MemoryPool* pool);
// Returns the rows with these indices, in this order.
Block take_rows(const Block& block, const std::shared_ptr<arrow::Array>& indices, arrow::MemoryPool* pool);
// Concatenates blocks with the same types of columns; a single block, and columns that lie next to each other in
// memory, are not copied.
Block join(std::span<const Block> blocks, arrow::MemoryPool* pool);

// Returns the bytes that the rows of a block take, without the rest of buffers that they share.
std::int64_t bytes_of(const Block& block);

}  // namespace cadre::data
