// Blocks as bytes in Arrow's streaming format, and blocks as views of such bytes.
#pragma once

#include <arrow/buffer.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <span>
#include <vector>

#include "base/memory_map.h"
#include "cadre/object.h"
#include "data/plan.h"

namespace arrow::io {
class OutputStream;
}

namespace cadre::data {

struct ReadBlocks {
  std::shared_ptr<arrow::Schema> schema;
  std::vector<Block> blocks;
};

void write_blocks(arrow::io::OutputStream& stream, const arrow::Schema& schema, std::span<const Block> blocks);

// Return views of the bytes: nothing is copied, and the blocks keep the memory.
ReadBlocks read_blocks(const Object& object);
ReadBlocks read_blocks(std::shared_ptr<const base::MemoryMap> memory);

ObjectRef put_blocks(const arrow::Schema& schema, std::span<const Block> blocks);

}  // namespace cadre::data
