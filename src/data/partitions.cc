#include "data/partitions.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/spilled_rows.h"

namespace cadre::data {
namespace {

constexpr const char* kPartitioning = "cannot keep rows of groupby or join on disk";
constexpr std::int64_t kLeastBytesToWrite = std::int64_t{16} << 10;

class NoRows final : public BlockStream {
 public:
  std::optional<Block> next() override { return std::nullopt; }
  void cancel() override {}
};

}  // namespace

Block numbered(const Block& block, const std::string& column, std::int64_t first) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(block->num_rows()));
  std::iota(numbers.begin(), numbers.end(), first);
  return checked(block->AddColumn(block->num_columns(), column,
                                  std::make_shared<arrow::Int64Array>(block->num_rows(),
                                                                      arrow::Buffer::FromVector(std::move(numbers)))),
                 kPartitioning);
}

std::shared_ptr<arrow::Schema> numbered(const arrow::Schema& schema, const std::string& column) {
  return checked(schema.AddField(schema.num_fields(), arrow::field(column, arrow::int64())), kPartitioning);
}

Block without(const Block& block, const std::string& column) {
  const int index = block->schema()->GetFieldIndex(column);
  return index < 0 ? block : checked(block->RemoveColumn(index), kPartitioning);
}

// The rows of one partition: some in memory, the others written.
class Partitions::File {
 public:
  explicit File(std::string path) : written_(std::move(path), kPartitioning) {}

  void add(Block rows, std::int64_t bytes_to_write, arrow::MemoryPool* pool) {
    bytes_ += bytes_of(rows);
    waiting_.push_back(std::move(rows));
    if (bytes_ >= bytes_to_write) write(pool);
  }
  std::unique_ptr<BlockStream> take(arrow::MemoryPool* pool) {
    write(pool);
    return written_.take();
  }

 private:
  void write(arrow::MemoryPool* pool) {
    if (waiting_.empty()) return;
    written_.add(join(std::exchange(waiting_, {}), pool));
    bytes_ = 0;
  }

  SpilledRows written_;
  std::vector<Block> waiting_;
  std::int64_t bytes_ = 0;  // of these
};

Partitions::Partitions(std::int64_t memory_bytes, arrow::MemoryPool* pool)
    : bytes_to_write_(std::max(memory_bytes / static_cast<std::int64_t>(kCount), kLeastBytesToWrite)),
      pool_(pool),
      files_(kCount) {}

Partitions::~Partitions() = default;

void Partitions::add(const Block& rows, std::span<const std::uint64_t> hashes) {
  std::vector<std::vector<std::int64_t>> places(kCount);
  for (std::size_t row = 0; row < hashes.size(); ++row)
    places[hashes[row] % kCount].push_back(static_cast<std::int64_t>(row));
  for (std::size_t partition = 0; partition < kCount; ++partition) {
    if (places[partition].empty()) continue;
    auto& file = files_[partition];
    if (file == nullptr) file = std::make_unique<File>(folder_.path() / fmt::format("{:02}.arrows", partition));
    const auto count = std::ssize(places[partition]);
    const auto indices =
        std::make_shared<arrow::Int64Array>(count, arrow::Buffer::FromVector(std::move(places[partition])));
    file->add(take_rows(rows, indices, pool_), bytes_to_write_, pool_);
  }
}

std::unique_ptr<BlockStream> Partitions::take(std::size_t partition) {
  const auto file = std::exchange(files_[partition], nullptr);
  if (file == nullptr) return std::make_unique<NoRows>();
  return file->take(pool_);
}

std::optional<Block> CancellableParts::next() {
  for (;;) {
    if (cancelled_) throw Cancelled{};
    if (part_ != nullptr) {
      if (auto block = part_->next()) return block;
      part_.reset();
    }
    if (next_ == Partitions::kCount) return std::nullopt;
    part_ = open(next_++);
  }
}

}  // namespace cadre::data
