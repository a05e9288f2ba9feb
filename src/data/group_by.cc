#include "data/group_by.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/row/grouper.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>
#include <set>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/keys.h"
#include "data/sort.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr const char* kGrouping = "cannot group rows";
constexpr std::int64_t kGroupsInBlock = std::int64_t{1} << 16;
constexpr std::int64_t kMostGroups = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kBytesOfNumber = 24;  // what a key's number takes in a hash table; approximate
// The number of a row on disk. No text of UTF-8, and so no name of a column of anybody's.
constexpr const char* kFirstRow = "\xff first row";

}  // namespace

std::shared_ptr<arrow::Schema> schema_of(const GroupBy& group_by, const arrow::Schema& input) {
  require_keys(input, group_by.keys, "groupby");
  arrow::FieldVector fields;
  for (const std::string& key : group_by.keys)
    fields.push_back(arrow::field(key, key_type(input.GetFieldByName(key)->type())));
  for (const Aggregate& aggregate : group_by.aggregates) {
    const auto type = [&] {
      if (aggregate.column.empty()) return arrow::int64();
      require_columns(input, {aggregate.column}, "groupby");
      return result_type(aggregate, *input.GetFieldByName(aggregate.column)->type());
    }();
    fields.push_back(arrow::field(to_string(aggregate), type));
  }
  std::set<std::string> names;
  for (const auto& field : fields) {
    if (!names.insert(field->name()).second)
      throw InvalidArgument(fmt::format(
          "groupby makes two columns \"{}\": rename the key, or leave out one of the aggregates", field->name()));
  }
  return arrow::schema(std::move(fields));
}

void throw_memory_limit(const std::string& what, std::int64_t held_bytes, std::int64_t share_bytes,
                        const std::string& advice) {
  throw MemoryLimitError(
      fmt::format("{} more than {} bytes, and {} bytes are this operator's share of "
                  "ExecutionOptions::memory_limit_bytes: set a larger one, or {}",
                  what, held_bytes, share_bytes, advice));
}

// ---- Aggregates

// What is put on disk, and how much of it may be in memory.
struct Grouped::DiskOptions {
  std::int64_t limit_bytes = 0;
  arrow::MemoryPool* pool = nullptr;
  std::uint64_t groups = 0;                                     // in memory
  std::function<void(std::int64_t kept_bytes)> hold_kept = {};  // reports the values of a part that are in memory

  // Makes one of `count` objects that share the memory for rows on their way to the disk.
  std::unique_ptr<Partitions> make_partitions(std::int64_t count) const {
    return std::make_unique<Partitions>(limit_bytes / 8 / count, pool);
  }
};

// The groups in memory.
class Grouped::Table {
 public:
  Table(const GroupBy& group_by, const arrow::Schema& input)
      : schema_(schema_of(group_by, input)),
        key_names_(group_by.keys),
        key_fields_(schema_->fields().begin(), schema_->fields().begin() + std::ssize(group_by.keys)),
        keys_(key_fields_),
        kept_on_disk_(group_by.aggregates.size()) {
    for (const Aggregate& aggregate : group_by.aggregates) aggregations_.emplace_back(aggregate, group_by.options);
  }

  // Adds rows; new keys make new groups.
  void add(const Block& block) {
    const arrow::ArrayVector columns = key_columns(block, key_names_);
    const std::int64_t before = keys_.count();
    const auto numbers = keys_.add(columns);
    key_bytes_ += bytes_of(arrow::RecordBatch::Make(arrow::schema(key_fields_), block->num_rows(), columns)) *
                  (keys_.count() - before) / block->num_rows();
    if (keys_.count() > kMostGroups) throw InvalidArgument(fmt::format("groupby has more than {} groups", kMostGroups));
    add(block, *numbers);
  }
  // Adds rows of groups that are there. `numbers`: their groups.
  void add(const Block& block, const arrow::UInt32Array& numbers) {
    for (Aggregation& aggregation : aggregations_) {
      const std::string& column = aggregation.aggregate().column;
      if (column.empty()) {
        aggregation.add_rows(block->num_rows(), &numbers, keys_.count());
      } else {
        aggregation.add(block->GetColumnByName(column), &numbers, keys_.count());
      }
    }
  }
  // Returns the group of each row, null for keys without one.
  std::shared_ptr<arrow::UInt32Array> find(const Block& block) const {
    return keys_.find(key_columns(block, key_names_));
  }

  std::int64_t kept_bytes() const {
    std::int64_t bytes = 0;
    for (const Aggregation& aggregation : aggregations_) bytes += aggregation.held_bytes();
    return bytes;
  }
  std::int64_t held_bytes() const { return key_bytes_ + keys_.count() * bytes_per_group() + kept_bytes(); }

  // Returns the rows that may be added at a time: if all of them make new groups, these take little of the limit.
  std::int64_t rows_at_a_time(std::int64_t limit_bytes) const {
    return std::max<std::int64_t>(limit_bytes / (16 * bytes_per_group()), 16);
  }

  // Puts the values that aggregates keep on disk.
  void put_kept_on_disk(const DiskOptions& options) {
    for (std::size_t i = 0; i < aggregations_.size(); ++i) {
      const Block kept = aggregations_[i].release_kept();
      if (kept == nullptr) continue;
      auto& files = kept_on_disk_[i];
      if (files == nullptr) files = options.make_partitions(std::ssize(aggregations_));
      put_kept(kept, *files, 1);
    }
  }

  Block groups(DiskOptions options) {
    options.groups = static_cast<std::uint64_t>(keys_.count());
    for (std::size_t i = 0; i < aggregations_.size(); ++i) {
      if (kept_on_disk_[i] == nullptr) continue;
      put_kept(aggregations_[i].release_kept(), *kept_on_disk_[i], 1);
      settle(aggregations_[i], *std::exchange(kept_on_disk_[i], nullptr), 1, options);
    }
    arrow::ArrayVector columns = keys_.keys();
    for (const Aggregation& aggregation : aggregations_) columns.push_back(aggregation.results(keys_.count()));
    return arrow::RecordBatch::Make(schema_, keys_.count(), std::move(columns));
  }

 private:
  std::int64_t bytes_per_group() const {
    return kBytesOfNumber + std::ssize(aggregations_) * Aggregation::bytes_per_group();
  }
  // `divisor`: of the groups' numbers; the last digits of the quotients select the partitions. `kept`: may be null.
  static void put_kept(const Block& kept, Partitions& files, std::uint64_t divisor) {
    if (kept == nullptr) return;
    const auto& groups = static_cast<const arrow::UInt32Array&>(*kept->column(0));
    std::vector<std::uint64_t> hashes(groups.raw_values(), groups.raw_values() + groups.length());
    for (std::uint64_t& hash : hashes) hash /= divisor;
    files.add(kept, hashes);
  }
  // Computes the results of values on disk, some groups after the others.
  static void settle(Aggregation& aggregation, Partitions& files, std::uint64_t divisor, const DiskOptions& options) {
    for (std::size_t part = 0; part < Partitions::kCount; ++part) {
      const auto rows = files.take(part);
      while (const auto block = rows->next()) {
        aggregation.add_kept(*block);
        options.hold_kept(aggregation.held_bytes());
        if (aggregation.held_bytes() <= options.limit_bytes / 2) continue;
        if (divisor * Partitions::kCount < options.groups) divide(aggregation, *rows, divisor, options);
        if (aggregation.held_bytes() > options.limit_bytes)
          throw_memory_limit("the values that quantile and count_distinct keep of one group take",
                             aggregation.held_bytes(), options.limit_bytes,
                             "aggregate a sample of the rows (random_sample)");
      }
      aggregation.settle_kept();
    }
  }
  // Divides the values of a part that does not fit among finer ones.
  static void divide(Aggregation& aggregation, BlockStream& rest, std::uint64_t divisor, const DiskOptions& options) {
    const auto finer = options.make_partitions(1);
    put_kept(aggregation.release_kept(), *finer, divisor * Partitions::kCount);
    while (const auto block = rest.next()) put_kept(*block, *finer, divisor * Partitions::kCount);
    settle(aggregation, *finer, divisor * Partitions::kCount, options);
  }

  std::shared_ptr<arrow::Schema> schema_;
  Names key_names_;
  arrow::FieldVector key_fields_;
  KeyNumbers keys_;
  std::vector<Aggregation> aggregations_;
  std::vector<std::unique_ptr<Partitions>> kept_on_disk_;  // of each aggregation; null: nothing
  std::int64_t key_bytes_ = 0;
};

// The groups of the rows on disk, one part after the other.
class Grouped::Parts final : public CancellableParts {
 public:
  Parts(std::unique_ptr<Partitions> rows, Options options, std::shared_ptr<OperatorProgress> progress,
        const std::atomic<bool>& cancelled)
      : CancellableParts(cancelled),
        rows_(std::move(rows)),
        options_(std::move(options)),
        progress_(std::move(progress)) {}

 private:
  std::unique_ptr<BlockStream> open(std::size_t partition) override {
    return std::make_unique<Grouped>(rows_->take(partition), options_, progress_);
  }

  std::unique_ptr<Partitions> rows_;
  Options options_;
  std::shared_ptr<OperatorProgress> progress_;
};

Grouped::Grouped(std::unique_ptr<BlockStream> input, Options options, std::shared_ptr<OperatorProgress> progress)
    : input_(std::move(input)), options_(std::move(options)), progress_(std::move(progress)) {}

Grouped::~Grouped() { progress_->hold(-held_bytes_); }

void Grouped::cancel() {
  cancelled_ = true;
  input_->cancel();
}

void Grouped::hold(std::int64_t bytes) {
  progress_->hold(bytes - held_bytes_);
  held_bytes_ = bytes;
}

void Grouped::divide(const Block& block) {
  const auto numbers = table_->find(block);
  if (numbers->null_count() == 0) return table_->add(block, *numbers);
  arrow::BooleanBuilder is_known;
  arrow::BooleanBuilder is_other;
  arrow::UInt32Builder known_numbers;
  for (std::int64_t row = 0; row < numbers->length(); ++row) {
    const bool is_valid = numbers->IsValid(row);
    check(is_known.Append(is_valid), kGrouping);
    check(is_other.Append(!is_valid), kGrouping);
    if (is_valid) check(known_numbers.Append(numbers->Value(row)), kGrouping);
  }
  const Block known = keep_rows(block, checked(is_known.Finish(), kGrouping), options_.pool);
  const auto of_known = checked(known_numbers.Finish(), kGrouping);
  if (known->num_rows() > 0) table_->add(known, static_cast<const arrow::UInt32Array&>(*of_known));
  const Block others = keep_rows(options_.depth > 0 ? block : numbered(block, kFirstRow, row_),
                                 checked(is_other.Finish(), kGrouping), options_.pool);
  others_->add(others, hash_keys(key_columns(others, options_.group_by.keys), options_.depth));
}

void Grouped::add(const Block& block) {
  // The other half is for what is on its way to the disk and from there.
  const std::int64_t most = options_.limit_bytes / 2;
  const DiskOptions disk{.limit_bytes = options_.limit_bytes, .pool = options_.pool};
  others_ == nullptr ? table_->add(block) : divide(block);
  row_ += block->num_rows();
  if (table_->held_bytes() > most && table_->kept_bytes() > most / 2) table_->put_kept_on_disk(disk);
  if (table_->held_bytes() > most && others_ == nullptr) others_ = disk.make_partitions(1);
  hold(table_->held_bytes() + (others_ != nullptr ? options_.limit_bytes / 8 : 0));
}

void Grouped::read_all() {
  while (const auto block = input_->next()) {
    const OperatorProgress::Busy busy(*progress_);
    if (table_ == nullptr) table_ = std::make_unique<Table>(options_.group_by, *(*block)->schema());
    const std::int64_t rows = table_->rows_at_a_time(options_.limit_bytes);
    for (std::int64_t at = 0; at < (*block)->num_rows(); at += rows) add((*block)->Slice(at, rows));
    progress_->count_task();
  }
  if (table_ == nullptr) return;
  const OperatorProgress::Busy busy(*progress_);
  const std::int64_t held_bytes = table_->held_bytes() - table_->kept_bytes();
  groups_ = table_->groups({.limit_bytes = options_.limit_bytes,
                            .pool = options_.pool,
                            .hold_kept = [&](std::int64_t kept_bytes) { hold(held_bytes + kept_bytes); }});
  table_.reset();
}

std::unique_ptr<BlockStream> Grouped::groups_on_disk() {
  Options options = options_;
  ++options.depth;
  if (options_.depth > 0) return std::make_unique<Parts>(std::move(others_), options, progress_, cancelled_);
  options.limit_bytes /= 2;  // the other half is for the sort
  const Aggregate first_row = min(kFirstRow);
  options.group_by.aggregates.push_back(first_row);
  return std::make_unique<Sorted>(std::make_unique<Parts>(std::move(others_), options, progress_, cancelled_),
                                  Sorted::Options{.keys = {to_string(first_row)},
                                                  .limit_bytes = options.limit_bytes,
                                                  .block_bytes = options_.block_bytes,
                                                  .pool = options_.pool},
                                  progress_);
}

std::optional<Block> Grouped::next() {
  if (!std::exchange(has_read_, true)) read_all();
  if (groups_ != nullptr && at_ < groups_->num_rows()) {
    const Block block = groups_->Slice(at_, kGroupsInBlock);
    at_ += block->num_rows();
    if (options_.depth == 0) progress_->count(block->num_rows(), bytes_of(block));
    return block;
  }
  groups_.reset();
  hold(0);
  if (others_ != nullptr) on_disk_ = groups_on_disk();
  if (on_disk_ == nullptr) return std::nullopt;
  const auto block = on_disk_->next();
  if (!block || options_.depth > 0) return block;
  return without(*block, to_string(min(kFirstRow)));
}

// ---- Groups as blocks

GroupBlocks::GroupBlocks(std::unique_ptr<BlockStream> input, Names keys, std::int64_t limit_bytes,
                         arrow::MemoryPool* pool)
    : input_(std::move(input)), keys_(std::move(keys)), limit_bytes_(limit_bytes), pool_(pool) {}

GroupBlocks::~GroupBlocks() = default;

std::optional<Block> GroupBlocks::finish_group() {
  if (group_.empty()) return std::nullopt;
  group_bytes_ = 0;
  return join(std::exchange(group_, {}), pool_);
}

std::optional<Block> GroupBlocks::next() {
  for (;;) {
    for (; !segments_.empty(); segments_.pop_back()) {
      Block& segment = segments_.back();
      if (segment == nullptr) {  // the end of a group
        if (auto group = finish_group()) {
          segments_.pop_back();
          return group;
        }
        continue;
      }
      group_bytes_ += bytes_of(segment);
      // Joining the parts of a group needs the same amount again.
      if (2 * group_bytes_ > limit_bytes_)
        throw_memory_limit("a group of map_groups takes", 2 * group_bytes_, limit_bytes_,
                           "aggregate() the groups, which does not hold their rows");
      group_.push_back(std::move(segment));
    }
    const auto block = input_->next();
    if (!block) return finish_group();
    if (segmenter_ == nullptr) require_keys(*(*block)->schema(), keys_, "map_groups");
    const arrow::ArrayVector columns = with_equal_bits(key_columns(*block, keys_));
    std::vector<arrow::Datum> values(columns.begin(), columns.end());
    if (segmenter_ == nullptr) {
      std::vector<arrow::TypeHolder> types;
      for (const auto& column : columns) types.emplace_back(column->type());
      segmenter_ =
          checked(arrow::compute::RowSegmenter::Make(types, true, arrow::compute::default_exec_context()), kGrouping);
    }
    const arrow::compute::ExecBatch batch(std::move(values), (*block)->num_rows());
    const auto segments = checked(segmenter_->GetSegments(arrow::compute::ExecSpan(batch)), kGrouping);
    for (const auto& segment : std::views::reverse(segments)) {
      if (segment.length > 0) segments_.push_back((*block)->Slice(segment.offset, segment.length));
      if (!segment.extends) segments_.push_back(nullptr);
    }
  }
}

}  // namespace cadre::data
