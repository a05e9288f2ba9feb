#include "data/shuffle.h"

#include <arrow/array.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/datum.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlaceColumn = "cadre row";
constexpr std::size_t kFiles = 256;
constexpr const char* kSpilling = "cannot keep rows of random_shuffle on disk";

std::uint64_t key_of(std::uint64_t seed, std::int64_t row) {
  return base::RandomStream(seed, 0, base::Purpose::dataset_shuffle, static_cast<std::uint64_t>(row)).bits();
}

Block with_places(const Block& block, std::int64_t first) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(block->num_rows()));
  std::iota(places.begin(), places.end(), first);
  const auto array =
      std::make_shared<arrow::Int64Array>(block->num_rows(), arrow::Buffer::FromVector(std::move(places)));
  return checked(block->AddColumn(block->num_columns(), kPlaceColumn, array), "cannot shuffle rows");
}

std::span<const std::int64_t> places_of(const Block& block) {
  const auto& places = static_cast<const arrow::Int64Array&>(*block->column(block->num_columns() - 1));
  return {places.raw_values(), static_cast<std::size_t>(places.length())};
}

}  // namespace

// The files, in a temporary folder that is removed with this object.
class Shuffled::Spill {
 public:
  Spill(std::shared_ptr<arrow::Schema> schema, std::uint64_t seed) : schema_(std::move(schema)), seed_(seed) {}
  ~Spill() {
    for (auto& file : files_) {
      if (file.writer) (void)file.writer->Close();
    }
  }
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  void add(std::span<const Block> blocks, arrow::MemoryPool* pool) {
    const Block all = join(blocks, pool);
    const auto places = places_of(all);
    std::array<std::vector<std::int64_t>, kFiles> rows;
    for (std::size_t row = 0; row < places.size(); ++row)
      rows[key_of(seed_, places[row]) / (UINT64_MAX / kFiles + 1)].push_back(static_cast<std::int64_t>(row));
    for (std::size_t number = 0; number < kFiles; ++number) {
      if (rows[number].empty()) continue;
      const auto count = std::ssize(rows[number]);
      const auto indices =
          std::make_shared<arrow::Int64Array>(count, arrow::Buffer::FromVector(std::move(rows[number])));
      check(writer(number).WriteRecordBatch(*take_rows(all, indices, pool)), kSpilling);
    }
  }
  // Returns the rows of the next file; empty at the end.
  std::vector<Block> take_next() {
    std::vector<Block> blocks;
    for (; blocks.empty() && next_ < kFiles; ++next_) {
      File& file = files_[next_];
      if (!file.writer) continue;
      check(file.writer->Close(), kSpilling);
      check(file.stream->Close(), kSpilling);
      file.writer.reset();
      const auto source = checked(arrow::io::MemoryMappedFile::Open(path(next_), arrow::io::FileMode::READ), kSpilling);
      const auto reader = checked(arrow::ipc::RecordBatchStreamReader::Open(source), kSpilling);
      for (;;) {
        Block block;
        check(reader->ReadNext(&block), kSpilling);
        if (block == nullptr) break;
        blocks.push_back(std::move(block));
      }
      fs::remove(path(next_));  // the mapping stays valid
    }
    return blocks;
  }

 private:
  struct File {
    std::shared_ptr<arrow::io::FileOutputStream> stream;
    std::shared_ptr<arrow::ipc::RecordBatchWriter> writer;
  };

  std::string path(std::size_t number) const { return folder_.path() / fmt::format("{:03}.arrows", number); }
  arrow::ipc::RecordBatchWriter& writer(std::size_t number) {
    File& file = files_[number];
    if (!file.writer) {
      file.stream = checked(arrow::io::FileOutputStream::Open(path(number)), kSpilling);
      file.writer = checked(arrow::ipc::MakeStreamWriter(file.stream, schema_), kSpilling);
    }
    return *file.writer;
  }

  std::shared_ptr<arrow::Schema> schema_;
  std::uint64_t seed_;
  base::TemporaryFolder folder_{"cadre-dataset-shuffle"};
  std::array<File, kFiles> files_;
  std::size_t next_ = 0;
};

Shuffled::Shuffled(std::unique_ptr<BlockStream> input, const Options& options,
                   std::shared_ptr<OperatorProgress> progress)
    : input_(std::move(input)), options_(options), progress_(std::move(progress)) {}

Shuffled::~Shuffled() { progress_->hold(-held_bytes_); }

void Shuffled::read_all() {
  while (const auto block = input_->next()) {
    blocks_.push_back(with_places(*block, rows_read_));
    rows_read_ += (*block)->num_rows();
    const std::int64_t bytes = bytes_of(blocks_.back());
    held_bytes_ += bytes;
    bytes_read_ += bytes;
    progress_->hold(bytes);
    // Sorting and spilling need the same amount again.
    if (held_bytes_ < options_.limit_bytes / 2) continue;
    if (!spill_) spill_ = std::make_unique<Spill>(blocks_.front()->schema(), options_.seed);
    spill_->add(blocks_, options_.pool);
    blocks_.clear();
    progress_->hold(-std::exchange(held_bytes_, 0));
  }
  if (spill_ && !blocks_.empty()) {
    spill_->add(blocks_, options_.pool);
    blocks_.clear();
    progress_->hold(-std::exchange(held_bytes_, 0));
  }
}

void Shuffled::sort_next() {
  const OperatorProgress::Busy busy(*progress_);
  sorted_.reset();
  if (spill_) blocks_ = spill_->take_next();
  if (blocks_.empty()) return;
  std::vector<std::uint64_t> keys;
  for (const Block& block : blocks_) {
    for (const std::int64_t place : places_of(block)) keys.push_back(key_of(options_.seed, place));
  }
  order_.resize(keys.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {}, [&](std::int64_t row) { return keys[static_cast<std::size_t>(row)]; });
  at_ = 0;
  const auto table = checked(arrow::Table::FromRecordBatches(std::exchange(blocks_, {})), "cannot shuffle rows");
  sorted_ = checked(table->RemoveColumn(table->num_columns() - 1), "cannot shuffle rows");
  progress_->count_task();
}

std::optional<Block> Shuffled::next() {
  if (!std::exchange(has_read_, true)) {
    initialise_compute();
    read_all();
    sort_next();
  }
  while (sorted_ && at_ == order_.size()) sort_next();
  if (!sorted_) return std::nullopt;
  const std::int64_t bytes_per_row = bytes_read_ / std::max<std::int64_t>(rows_read_, 1) + 1;
  const auto most =
      static_cast<std::size_t>(std::clamp<std::int64_t>(options_.block_bytes / bytes_per_row, 1, 1 << 16));
  const std::size_t count = std::min(most, order_.size() - at_);
  const auto indices = std::make_shared<arrow::Int64Array>(static_cast<std::int64_t>(count),
                                                           arrow::Buffer::Wrap(order_.data() + at_, count));
  at_ += count;
  arrow::compute::ExecContext context(options_.pool);
  context.set_use_threads(false);
  const auto taken = checked(
      arrow::compute::Take(sorted_, arrow::Datum(indices), arrow::compute::TakeOptions::NoBoundsCheck(), &context),
      "cannot shuffle rows");
  const auto columns = checked(taken.table()->CombineChunksToBatch(options_.pool), "cannot shuffle rows");
  // A table without columns does not know its number of rows.
  const Block block = arrow::RecordBatch::Make(columns->schema(), indices->length(), columns->columns());
  progress_->count(block->num_rows(), bytes_of(block));
  return block;
}

}  // namespace cadre::data
