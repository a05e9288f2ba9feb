#include "data/group_by.h"

#include <arrow/array.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/row/grouper.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <set>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/keys.h"
#include "data/source.h"

namespace cadre::data {
namespace {

constexpr const char* kGrouping = "cannot group rows";
constexpr std::int64_t kGroupsInBlock = std::int64_t{1} << 16;
constexpr std::int64_t kMostGroups = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kBytesOfNumber = 24;  // what a key's number takes in a hash table; approximate

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

void Grouped::hold(std::int64_t bytes) {
  progress_->hold(bytes - held_bytes_);
  held_bytes_ = bytes;
  if (bytes > limit_bytes_)
    throw_memory_limit("the groups of groupby take", bytes, limit_bytes_, "group by keys with fewer values");
}

Block Grouped::read_all() {
  std::unique_ptr<KeyNumbers> keys;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<Aggregation> aggregations;
  for (const Aggregate& aggregate : group_by_.aggregates) aggregations.emplace_back(aggregate, group_by_.options);
  const std::int64_t bytes_per_group = kBytesOfNumber + std::ssize(aggregations) * Aggregation::bytes_per_group();
  arrow::FieldVector fields;
  std::int64_t key_bytes = 0;
  while (const auto block = input_->next()) {
    const OperatorProgress::Busy busy(*progress_);
    if (schema == nullptr) {
      schema = schema_of(group_by_, *(*block)->schema());
      fields = {schema->fields().begin(), schema->fields().begin() + std::ssize(group_by_.keys)};
      keys = std::make_unique<KeyNumbers>(fields);
    }
    const arrow::ArrayVector columns = key_columns(*block, group_by_.keys);
    const std::int64_t before = keys->count();
    const auto numbers = keys->add(columns);
    const std::int64_t count = keys->count();
    for (Aggregation& aggregation : aggregations) {
      const std::string& column = aggregation.aggregate().column;
      if (column.empty()) {
        aggregation.add_rows((*block)->num_rows(), numbers.get(), count);
      } else {
        aggregation.add((*block)->GetColumnByName(column), numbers.get(), count);
      }
    }
    key_bytes += bytes_of(arrow::RecordBatch::Make(arrow::schema(fields), (*block)->num_rows(), columns)) *
                 (count - before) / (*block)->num_rows();
    std::int64_t value_bytes = 0;
    for (const Aggregation& aggregation : aggregations) value_bytes += aggregation.held_bytes();
    hold(key_bytes + count * bytes_per_group + value_bytes);
    if (count > kMostGroups) throw InvalidArgument(fmt::format("groupby has more than {} groups", kMostGroups));
    progress_->count_task();
  }
  if (keys == nullptr) return nullptr;
  const OperatorProgress::Busy busy(*progress_);
  arrow::ArrayVector columns = keys->keys();
  for (const Aggregation& aggregation : aggregations) columns.push_back(aggregation.results(keys->count()));
  return arrow::RecordBatch::Make(schema, keys->count(), std::move(columns));
}

std::optional<Block> Grouped::next() {
  if (groups_ == nullptr) groups_ = read_all();
  if (groups_ == nullptr || at_ == groups_->num_rows()) return std::nullopt;
  const Block block = groups_->Slice(at_, kGroupsInBlock);
  at_ += block->num_rows();
  progress_->count(block->num_rows(), bytes_of(block));
  return block;
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
    const arrow::ArrayVector columns = key_columns(*block, keys_);
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
