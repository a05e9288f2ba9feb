// Rows on disk, divided by their keys into parts that fit into memory one after the other. Source: "Application of hash
// to data base machine and its architecture", Kitsuregawa et al. (the Grace hash join).
#pragma once

#include <arrow/type_fwd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "data/stream.h"

namespace cadre::data {

// Returns a block with a column more, at its end: the numbers of its rows, from `first` on.
Block numbered(const Block& block, const std::string& column, std::int64_t first);
// Returns the schema of such a block.
std::shared_ptr<arrow::Schema> numbered(const arrow::Schema& schema, const std::string& column);
// Returns a block without the column.
Block without(const Block& block, const std::string& column);

// Files in a temporary folder, which is removed with this object.
class Partitions {
 public:
  static constexpr std::size_t kCount = 32;

  // `memory_bytes`: what rows may take, approximately, before they are written.
  Partitions(std::int64_t memory_bytes, arrow::MemoryPool* pool);
  ~Partitions();
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;

  // Adds rows, each to the partition that its hash selects. All blocks have the same columns.
  void add(const Block& rows, std::span<const std::uint64_t> hashes);
  // Returns the rows of a partition in the order in which they were added. Called once for each, after all rows.
  std::unique_ptr<BlockStream> take(std::size_t partition);

 private:
  class File;

  base::TemporaryFolder folder_{"cadre-dataset-partitions"};
  const std::int64_t bytes_to_write_;  // of one partition
  arrow::MemoryPool* pool_;
  std::vector<std::unique_ptr<File>> files_;  // null: without rows
};

// A stream that another thread may end.
class CancellableParts : public BlockStream {
 public:
  explicit CancellableParts(const std::atomic<bool>& cancelled) : cancelled_(cancelled) {}

  std::optional<Block> next() override;
  void cancel() override {}  // the flag is set by the owner

 protected:
  // Returns the stream of a partition.
  virtual std::unique_ptr<BlockStream> open(std::size_t partition) = 0;

 private:
  const std::atomic<bool>& cancelled_;
  std::unique_ptr<BlockStream> part_;
  std::size_t next_ = 0;
};

}  // namespace cadre::data
