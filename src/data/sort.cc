#include "data/sort.h"

#include <arrow/array.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/ordering.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "base/temporary_folder.h"
#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/keys.h"
#include "data/spilled_rows.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;

constexpr const char* kSorting = "cannot sort rows";
constexpr const char* kSortSpilling = "cannot keep rows of sort or random_shuffle on disk";
// Runs that are merged at a time. More of them are first merged into longer ones.
constexpr std::size_t kMostRuns = 64;
// Columns of texts in one block have at most 2 GiB.
constexpr std::int64_t kMostRunBytes = std::int64_t{1} << 30;
constexpr std::int64_t kLeastRunBlockBytes = std::int64_t{16} << 10;

Names names_of(const std::vector<SortKey>& keys) {
  Names columns;
  for (const SortKey& key : keys) columns.push_back(key.column);
  return columns;
}

std::int64_t rows_in(std::int64_t bytes, std::int64_t all_bytes, std::int64_t all_rows) {
  const std::int64_t bytes_per_row = all_bytes / std::max<std::int64_t>(all_rows, 1) + 1;
  return std::clamp<std::int64_t>(bytes / bytes_per_row, 1, 1 << 16);
}

}  // namespace

void require_sort_keys(const arrow::Schema& schema, const std::vector<SortKey>& keys) {
  require_keys(schema, names_of(keys), "sort");
}

std::shared_ptr<arrow::Array> sorted_indices(const Block& block, const std::vector<SortKey>& keys,
                                             arrow::MemoryPool* pool) {
  arrow::ArrayVector values = key_columns(block, names_of(keys));
  // The same column may be there twice, so that columns have numbers for names.
  arrow::FieldVector fields;
  std::vector<cp::SortKey> order;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fields.push_back(arrow::field(std::to_string(i), values[i]->type()));
    order.emplace_back(std::to_string(i), keys[i].descending ? cp::SortOrder::Descending : cp::SortOrder::Ascending);
  }
  const auto batch = arrow::RecordBatch::Make(arrow::schema(std::move(fields)), block->num_rows(), std::move(values));
  cp::ExecContext context(pool);
  context.set_use_threads(false);
  return checked(cp::SortIndices(arrow::Datum(batch), cp::SortOptions(std::move(order)), &context), kSorting);
}

// Rows that are sorted in memory, in blocks.
class Sorted::InMemory final : public BlockStream {
 public:
  InMemory(const std::vector<Block>& blocks, const Options& options, std::int64_t block_bytes)
      : options_(options), rows_(join(blocks, options.pool)) {
    order_ = sorted_indices(rows_, options.keys, options.pool);
    step_ = rows_in(block_bytes, bytes_of(rows_), rows_->num_rows());
  }

  std::optional<Block> next() override {
    if (at_ >= order_->length()) return std::nullopt;
    const auto indices = order_->Slice(at_, step_);
    at_ += step_;
    return take_rows(rows_, indices, options_.pool);
  }
  void cancel() override {}

 private:
  const Options& options_;
  Block rows_;
  std::shared_ptr<arrow::Array> order_;
  std::int64_t step_ = 0;
  std::int64_t at_ = 0;
};

// Several runs, which are streams of sorted rows, as one. The next block of each is in memory. All rows that come
// before the last row of each such block are before all rows that are not in memory.
class Sorted::Merged final : public BlockStream {
 public:
  // The runs are in the order of their rows in the input.
  Merged(std::vector<std::unique_ptr<BlockStream>> runs, const Options& options) : options_(options) {
    for (auto& run : runs) heads_.push_back({std::move(run), nullptr});
  }

  std::optional<Block> next() override {
    std::vector<Block> blocks;
    std::vector<std::size_t> owners;  // of blocks: places in heads_
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      Head& head = heads_[i];
      if (head.rest == nullptr && head.run != nullptr) {
        if (auto block = head.run->next()) {
          head.rest = *std::move(block);
        } else {
          head.run.reset();
        }
      }
      if (head.rest == nullptr) continue;
      blocks.push_back(head.rest);
      owners.push_back(i);
    }
    if (blocks.empty()) return std::nullopt;
    const Block all = join(blocks, options_.pool);
    const auto order = sorted_indices(all, options_.keys, options_.pool);
    const std::int64_t count = rows_before_next_read(static_cast<const arrow::UInt64Array&>(*order), blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Head& head = heads_[owners[i]];
      head.rest = taken_[i] == blocks[i]->num_rows() ? nullptr : blocks[i]->Slice(taken_[i]);
    }
    return take_rows(all, order->Slice(0, count), options_.pool);
  }
  void cancel() override {}

 private:
  struct Head {
    std::unique_ptr<BlockStream> run;  // null: it has no more blocks
    Block rest;                        // null: none
  };

  // Returns the number of rows up to the first one behind which another block of its run follows. Sets taken_ to the
  // number of these rows in each block.
  std::int64_t rows_before_next_read(const arrow::UInt64Array& order, const std::vector<Block>& blocks) {
    std::vector<std::uint64_t> ends;
    std::uint64_t end = 0;
    for (const Block& block : blocks) ends.push_back(end += static_cast<std::uint64_t>(block->num_rows()));
    taken_.assign(blocks.size(), 0);
    for (std::int64_t i = 0; i < order.length(); ++i) {
      const std::uint64_t row = order.Value(i);
      const auto block = static_cast<std::size_t>(std::ranges::upper_bound(ends, row) - ends.begin());
      ++taken_[block];
      if (row + 1 == ends[block]) return i + 1;
    }
    return order.length();
  }

  const Options& options_;
  std::vector<Head> heads_;
  std::vector<std::int64_t> taken_;
};

// The runs, in a temporary folder that is removed with this object.
class Sorted::Spill {
 public:
  explicit Spill(const Options& options) : options_(options) {}

  void add(BlockStream& sorted) { runs_.push_back(write(sorted)); }
  std::unique_ptr<BlockStream> merge() {
    while (runs_.size() > kMostRuns) {
      std::vector<std::unique_ptr<BlockStream>> longer;
      for (std::size_t begin = 0; begin < runs_.size(); begin += kMostRuns) {
        const std::size_t end = std::min(begin + kMostRuns, runs_.size());
        Merged merged({std::make_move_iterator(runs_.begin() + static_cast<std::ptrdiff_t>(begin)),
                       std::make_move_iterator(runs_.begin() + static_cast<std::ptrdiff_t>(end))},
                      options_);
        longer.push_back(write(merged));
      }
      runs_ = std::move(longer);
    }
    return std::make_unique<Merged>(std::move(runs_), options_);
  }

 private:
  std::unique_ptr<BlockStream> write(BlockStream& rows) {
    SpilledRows run(folder_.path() / fmt::format("{:06}.arrows", written_++), kSortSpilling);
    while (const auto block = rows.next()) run.add(*block);
    return run.take();
  }

  const Options& options_;
  base::TemporaryFolder folder_{"cadre-dataset-sort"};
  std::vector<std::unique_ptr<BlockStream>> runs_;
  std::int64_t written_ = 0;
};

Sorted::Sorted(std::unique_ptr<BlockStream> input, Options options, std::shared_ptr<OperatorProgress> progress)
    : input_(std::move(input)), options_(std::move(options)), progress_(std::move(progress)) {}

Sorted::~Sorted() { progress_->hold(-held_bytes_); }

void Sorted::spill() {
  const OperatorProgress::Busy busy(*progress_);
  if (!spill_) spill_ = std::make_unique<Spill>(options_);
  // One block of each run is in memory during the merge.
  const std::int64_t block_bytes = std::clamp(options_.limit_bytes / (4 * static_cast<std::int64_t>(kMostRuns)),
                                              kLeastRunBlockBytes, std::max(options_.block_bytes, kLeastRunBlockBytes));
  InMemory sorted(std::exchange(blocks_, {}), options_, block_bytes);
  spill_->add(sorted);
  progress_->hold(-std::exchange(held_bytes_, 0));
  progress_->count_task();
}

void Sorted::read_all() {
  // Sorting needs the same amount again.
  const std::int64_t most = std::min(options_.limit_bytes / 2, kMostRunBytes);
  while (auto block = input_->next()) {
    if (blocks_.empty() && !spill_) require_sort_keys(*(*block)->schema(), options_.keys);
    const std::int64_t bytes = bytes_of(*block);
    held_bytes_ += bytes;
    progress_->hold(bytes);
    blocks_.push_back(*std::move(block));
    if (held_bytes_ >= most) spill();
  }
  if (spill_) {
    if (!blocks_.empty()) spill();
    const OperatorProgress::Busy busy(*progress_);
    sorted_ = spill_->merge();
  } else if (!blocks_.empty()) {
    const OperatorProgress::Busy busy(*progress_);
    sorted_ = std::make_unique<InMemory>(std::exchange(blocks_, {}), options_, options_.block_bytes);
    progress_->count_task();
  }
}

std::optional<Block> Sorted::next() {
  if (!std::exchange(has_read_, true)) {
    initialise_compute();
    read_all();
  }
  if (sorted_ == nullptr) return std::nullopt;
  const OperatorProgress::Busy busy(*progress_);
  auto block = sorted_->next();
  if (block) progress_->count((*block)->num_rows(), bytes_of(*block));
  return block;
}

}  // namespace cadre::data
