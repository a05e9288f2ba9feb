#include "data/hash_join.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/group_by.h"
#include "data/sort.h"

namespace cadre::data {
namespace {

constexpr const char* kJoining = "cannot join datasets";
// Numbers of rows on disk. No texts of UTF-8, and so no names of columns of anybody's.
constexpr const char* kLeftRow = "\xff left row";
constexpr const char* kRightRow = "\xff right row";
constexpr std::uint64_t kMostDepth = 4;   // a part of a million that does not fit has rows with one key
constexpr std::int64_t kBytesOfRow = 32;  // what numbers of keys and places take; approximate
constexpr std::size_t kJoinedRows = std::size_t{1} << 14;  // in a block

bool is_semi_or_anti(JoinType type) { return type == JoinType::left_semi || type == JoinType::left_anti; }
bool keeps_left(JoinType type) { return type == JoinType::left_outer || type == JoinType::full_outer; }
bool keeps_right(JoinType type) { return type == JoinType::right_outer || type == JoinType::full_outer; }

bool contains(const Names& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

void require_matching_keys(const Join& join, const arrow::Schema& left, const arrow::Schema& right) {
  require_keys(left, join.left_on, "the left dataset of join");
  require_keys(right, join.right_on, "the right dataset of join");
  for (std::size_t i = 0; i < join.left_on.size(); ++i) {
    const auto of_left = key_type(left.GetFieldByName(join.left_on[i])->type());
    const auto of_right = key_type(right.GetFieldByName(join.right_on[i])->type());
    if (!of_left->Equals(*of_right))
      throw InvalidArgument(
          fmt::format("join cannot compare \"{}\" of the left dataset, which is of {}, with \"{}\" of the right one, "
                      "which is of {}: make a column of the other's type with a function of batches",
                      join.left_on[i], of_left->ToString(), join.right_on[i], of_right->ToString()));
  }
}

void require_different_columns(const std::vector<JoinedColumn>& columns) {
  std::map<std::string, int> counts;
  for (const JoinedColumn& column : columns) ++counts[column.field->name()];
  for (const auto& [name, count] : counts) {
    if (count > 1)
      throw InvalidArgument(
          fmt::format("join makes two columns \"{}\", because both datasets have one: set JoinOptions::left_suffix or "
                      "right_suffix to what makes their names different",
                      name));
  }
}

// Returns the rows with these indices; -1: null.
std::shared_ptr<arrow::Array> to_indices(const std::vector<std::int64_t>& rows) {
  arrow::Int64Builder indices;
  check(indices.Reserve(std::ssize(rows)), kJoining);
  for (const std::int64_t row : rows) {
    if (row < 0) {
      indices.UnsafeAppendNull();
    } else {
      indices.UnsafeAppend(row);
    }
  }
  return checked(indices.Finish(), kJoining);
}

// Returns for each row if all its keys have values.
std::vector<bool> rows_with_keys(const arrow::ArrayVector& keys) {
  std::vector<bool> all(static_cast<std::size_t>(keys.front()->length()), true);
  for (const auto& key : keys) {
    if (key->null_count() == 0) continue;
    for (std::int64_t row = 0; row < key->length(); ++row) {
      if (key->IsNull(row)) all[static_cast<std::size_t>(row)] = false;
    }
  }
  return all;
}

}  // namespace

std::vector<JoinedColumn> columns_of(const Join& join, const arrow::Schema& left, const arrow::Schema& right) {
  require_matching_keys(join, left, right);
  std::vector<JoinedColumn> columns;
  const bool has_left_keys = join.kind != JoinType::right_outer;
  // Keys of the right dataset keep their names, and are there only without those of the left one.
  const auto collides = [&](const std::string& name, bool is_of_left) {
    const bool may_collide = (is_of_left && !has_left_keys) || !contains(join.right_on, name);
    return may_collide && left.GetFieldIndex(name) >= 0 && right.GetFieldIndex(name) >= 0;
  };
  for (int i = 0; i < left.num_fields(); ++i) {
    auto field = left.field(i);
    const auto key = std::ranges::find(join.left_on, field->name());
    if (key != join.left_on.end()) {
      if (!has_left_keys) continue;
      JoinedColumn column{.left = i, .field = field};
      if (join.kind == JoinType::full_outer) {
        column.right = right.GetFieldIndex(join.right_on[static_cast<std::size_t>(key - join.left_on.begin())]);
        column.field = field->WithType(key_type(field->type()))->WithNullable(true);
      }
      columns.push_back(column);
      continue;
    }
    if (is_semi_or_anti(join.kind)) {
      columns.push_back({.left = i, .field = field});
      continue;
    }
    if (collides(field->name(), true)) field = field->WithName(field->name() + join.left_suffix);
    columns.push_back({.left = i, .field = keeps_right(join.kind) ? field->WithNullable(true) : field});
  }
  if (is_semi_or_anti(join.kind)) return columns;
  for (int i = 0; i < right.num_fields(); ++i) {
    auto field = right.field(i);
    if (has_left_keys && contains(join.right_on, field->name())) continue;
    if (collides(field->name(), false)) field = field->WithName(field->name() + join.right_suffix);
    columns.push_back({.right = i, .field = keeps_left(join.kind) ? field->WithNullable(true) : field});
  }
  require_different_columns(columns);
  return columns;
}

HashJoined::HashJoined(std::unique_ptr<BlockStream> left, std::unique_ptr<BlockStream> right, Options options,
                       std::shared_ptr<OperatorProgress> progress)
    : left_(std::move(left)), right_(std::move(right)), options_(std::move(options)), progress_(std::move(progress)) {}

void HashJoined::cancel() {
  cancelled_ = true;
  left_->cancel();
  right_->cancel();
}

void HashJoined::hold(std::int64_t bytes) {
  progress_->hold(bytes - held_bytes_);
  held_bytes_ = bytes;
}

namespace {

// A dataset without rows, whose columns come from a function, has only the key columns.
std::shared_ptr<arrow::Schema> only_keys(const Names& names, const arrow::Schema& other, const Names& others) {
  arrow::FieldVector fields;
  for (std::size_t i = 0; i < names.size(); ++i)
    fields.push_back(arrow::field(names[i], key_type(other.GetFieldByName(others[i])->type())));
  return arrow::schema(std::move(fields));
}

}  // namespace

// The joins of rows on disk, one part after the other.
class HashJoined::Parts final : public CancellableParts {
 public:
  Parts(std::unique_ptr<Partitions> left, std::unique_ptr<Partitions> right, Options options,
        std::shared_ptr<OperatorProgress> progress, const std::atomic<bool>& cancelled)
      : CancellableParts(cancelled),
        left_(std::move(left)),
        right_(std::move(right)),
        options_(std::move(options)),
        progress_(std::move(progress)) {}

 private:
  std::unique_ptr<BlockStream> open(std::size_t partition) override {
    return std::make_unique<HashJoined>(left_->take(partition), right_->take(partition), options_, progress_);
  }

  std::unique_ptr<Partitions> left_;
  std::unique_ptr<Partitions> right_;
  Options options_;
  std::shared_ptr<OperatorProgress> progress_;
};

std::shared_ptr<arrow::Schema> HashJoined::put_on_disk(BlockStream& rows, std::vector<Block> read, const Names& keys,
                                                       const char* number_column, Partitions& parts) const {
  std::shared_ptr<arrow::Schema> schema;
  std::int64_t row = 0;
  const auto put = [&](const Block& block) {
    if (schema == nullptr) require_keys(*block->schema(), keys, "join");
    const Block kept = options_.depth > 0 ? block : numbered(block, number_column, row);
    schema = kept->schema();
    const arrow::ArrayVector columns = key_columns(kept, keys);
    std::vector<std::uint64_t> hashes = hash_keys(columns, options_.depth);
    const std::vector<bool> is_whole = rows_with_keys(columns);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (!is_whole[i]) hashes[i] = static_cast<std::uint64_t>(row) + i;  // it matches nothing, and may be in any part
    }
    parts.add(kept, hashes);
    row += block->num_rows();
    progress_->count_task();
  };
  for (Block& block : read) put(std::exchange(block, nullptr));
  while (const auto block = rows.next()) put(*block);
  return schema;
}

std::unique_ptr<BlockStream> HashJoined::divide(std::vector<Block> right) {
  const Join& join = options_.join;
  const std::int64_t on_the_way = options_.limit_bytes / 8;
  auto left_parts = std::make_unique<Partitions>(on_the_way, options_.pool);
  auto right_parts = std::make_unique<Partitions>(on_the_way, options_.pool);
  Options options = options_;
  options.right_schema = put_on_disk(*right_, std::move(right), join.right_on, kRightRow, *right_parts);
  hold(2 * on_the_way);
  options.left_schema = put_on_disk(*left_, {}, join.left_on, kLeftRow, *left_parts);
  if (options.left_schema == nullptr) {
    const auto known = options_.left_schema != nullptr ? options_.left_schema
                                                       : only_keys(join.left_on, *options.right_schema, join.right_on);
    options.left_schema = options_.depth > 0 ? known : numbered(*known, kLeftRow);
  }
  hold(0);
  ++options.depth;
  if (options_.depth > 0)
    return std::make_unique<Parts>(std::move(left_parts), std::move(right_parts), options, progress_, cancelled_);
  options.limit_bytes /= 2;  // the other half is for the sort
  // Right rows without left ones have no number of these, so they come last.
  Sorted::Options order{.keys = {kLeftRow},
                        .limit_bytes = options.limit_bytes,
                        .block_bytes = options_.block_bytes,
                        .pool = options_.pool};
  if (!is_semi_or_anti(join.kind)) order.keys.emplace_back(kRightRow);
  return std::make_unique<Sorted>(
      std::make_unique<Parts>(std::move(left_parts), std::move(right_parts), options, progress_, cancelled_), order,
      progress_);
}

void HashJoined::read_right() {
  std::vector<Block> blocks;
  while (auto block = right_->next()) {
    // Joining the blocks to one needs the same amount again.
    hold(held_bytes_ + 2 * bytes_of(*block) + (*block)->num_rows() * kBytesOfRow);
    blocks.push_back(*std::move(block));
    if (held_bytes_ <= options_.limit_bytes) continue;
    if (options_.depth == kMostDepth)
      throw_memory_limit("the rows with equal keys that join holds in memory take", held_bytes_, options_.limit_bytes,
                         "leave out rows of the right dataset with the same key");
    divided_ = divide(std::move(blocks));
    return;
  }
  if (!blocks.empty()) {
    right_rows_ = data::join(blocks, options_.pool);
    hold(bytes_of(right_rows_) + right_rows_->num_rows() * kBytesOfRow);
  } else if (options_.right_schema != nullptr) {
    right_rows_ = checked(arrow::RecordBatch::MakeEmpty(options_.right_schema), kJoining);
  }
}

void HashJoined::number_keys() {
  if (right_rows_ == nullptr || right_rows_->num_rows() == 0) return;
  const arrow::ArrayVector keys = key_columns(right_rows_, options_.join.right_on);
  arrow::FieldVector fields;
  for (const auto& key : keys) fields.push_back(arrow::field("", key->type()));
  numbers_ = std::make_unique<KeyNumbers>(fields);
  const auto numbers = numbers_->add(keys);
  const std::vector<bool> is_whole = rows_with_keys(keys);
  begins_.assign(static_cast<std::size_t>(numbers_->count()) + 1, 0);
  keys_of_right_.assign(is_whole.size(), -1);
  for (std::size_t row = 0; row < is_whole.size(); ++row) {
    if (!is_whole[row]) continue;
    keys_of_right_[row] = numbers->Value(static_cast<std::int64_t>(row));
    ++begins_[static_cast<std::size_t>(keys_of_right_[row]) + 1];
  }
  for (std::size_t key = 1; key < begins_.size(); ++key) begins_[key] += begins_[key - 1];
  places_.resize(static_cast<std::size_t>(begins_.back()));
  std::vector<std::int64_t> next = begins_;
  for (std::size_t row = 0; row < is_whole.size(); ++row) {
    if (!is_whole[row]) continue;
    std::int64_t& place = next[static_cast<std::size_t>(keys_of_right_[row])];
    places_[static_cast<std::size_t>(place++)] = static_cast<std::int64_t>(row);
  }
  has_left_.assign(begins_.size() - 1, false);
}

void HashJoined::know_left(const std::shared_ptr<arrow::Schema>& schema) {
  const Join& join = options_.join;
  auto left = schema;
  if (left == nullptr && right_rows_ == nullptr) return;
  if (left == nullptr) {
    require_keys(*right_rows_->schema(), join.right_on, "the right dataset of join");
    left = only_keys(join.left_on, *right_rows_->schema(), join.right_on);
  }
  if (right_rows_ == nullptr) {
    require_keys(*left, join.left_on, "the left dataset of join");
    right_rows_ = checked(arrow::RecordBatch::MakeEmpty(only_keys(join.right_on, *left, join.left_on)), kJoining);
  }
  columns_ = columns_of(join, *left, *right_rows_->schema());
  arrow::FieldVector fields;
  for (const JoinedColumn& column : columns_) fields.push_back(column.field);
  schema_ = arrow::schema(std::move(fields));
}

bool HashJoined::read_left() {
  auto block = left_->next();
  if (!block) return false;
  if (schema_ == nullptr) know_left((*block)->schema());
  left_rows_ = *std::move(block);
  const arrow::ArrayVector keys = key_columns(left_rows_, options_.join.left_on);
  left_row_ = next_place_ = 0;
  left_numbers_ = nullptr;
  if (numbers_ != nullptr) left_numbers_ = numbers_->find(keys);
  return true;
}

// Keys with nulls have numbers but no places.
std::optional<Block> HashJoined::next_of_left() {
  const JoinType type = options_.join.kind;
  std::vector<std::int64_t> left;
  std::vector<std::int64_t> right;
  while (left.size() < kJoinedRows && left_row_ < left_rows_->num_rows()) {
    const bool has_number = left_numbers_ != nullptr && left_numbers_->IsValid(left_row_);
    const std::size_t key = has_number ? left_numbers_->Value(left_row_) : 0;
    const std::int64_t matches = has_number ? begins_[key + 1] - begins_[key] : 0;
    if (matches > 0) has_left_[key] = true;
    if (is_semi_or_anti(type)) {
      if ((matches > 0) == (type == JoinType::left_semi)) left.push_back(left_row_);
      ++left_row_;
      continue;
    }
    while (next_place_ < matches && left.size() < kJoinedRows) {
      left.push_back(left_row_);
      right.push_back(places_[static_cast<std::size_t>(begins_[key] + next_place_++)]);
    }
    if (next_place_ < matches) break;
    if (matches == 0 && keeps_left(type)) {
      left.push_back(left_row_);
      right.push_back(-1);
    }
    ++left_row_;
    next_place_ = 0;
  }
  if (left.empty()) return std::nullopt;
  return make(left, right);
}

std::optional<Block> HashJoined::rest_of_right() {
  if (!keeps_right(options_.join.kind) || right_rows_ == nullptr) return std::nullopt;
  std::vector<std::int64_t> right;
  for (; rest_at_ < right_rows_->num_rows() && right.size() < kJoinedRows; ++rest_at_) {
    const std::int64_t key = keys_of_right_[static_cast<std::size_t>(rest_at_)];
    if (key < 0 || !has_left_[static_cast<std::size_t>(key)]) right.push_back(rest_at_);
  }
  if (right.empty()) return std::nullopt;
  return make({}, right);
}

// `left`: empty for right rows without left ones.
Block HashJoined::make(const std::vector<std::int64_t>& left, const std::vector<std::int64_t>& right) const {
  const auto of_left = to_indices(left);
  const auto of_right = to_indices(right);
  arrow::compute::ExecContext context(options_.pool);
  context.set_use_threads(false);
  const auto take = [&](const std::shared_ptr<arrow::Array>& values, const std::shared_ptr<arrow::Array>& rows,
                        const std::shared_ptr<arrow::DataType>& type) {
    const auto taken =
        checked(arrow::compute::Take(*values, *rows, arrow::compute::TakeOptions::NoBoundsCheck(), &context), kJoining);
    return taken->type()->Equals(*type) ? taken : checked(arrow::compute::Cast(*taken, type), kJoining);
  };
  const auto rows = static_cast<std::int64_t>(left.empty() ? right.size() : left.size());
  arrow::ArrayVector values;
  for (const JoinedColumn& column : columns_) {
    const auto& type = column.field->type();
    if (column.left >= 0 && !left.empty()) {
      values.push_back(take(left_rows_->column(column.left), of_left, type));
    } else if (column.right >= 0) {
      values.push_back(take(right_rows_->column(column.right), of_right, type));
    } else {
      values.push_back(checked(arrow::MakeArrayOfNull(type, rows, options_.pool), kJoining));
    }
  }
  return arrow::RecordBatch::Make(schema_, rows, std::move(values));
}

std::optional<Block> HashJoined::next() {
  initialise_compute();
  if (!std::exchange(has_read_right_, true)) {
    read_right();
    if (divided_ == nullptr) number_keys();
    if (divided_ == nullptr && options_.left_schema != nullptr) know_left(options_.left_schema);
  }
  if (divided_ != nullptr) {
    auto block = divided_->next();
    if (block && options_.depth == 0) block = without(without(*block, kLeftRow), kRightRow);
    return block;
  }
  const auto counted = [&](std::optional<Block> block) {
    if (block && options_.depth == 0) progress_->count((*block)->num_rows(), bytes_of(*block));
    return block;
  };
  while (!left_is_over_) {
    if (left_rows_ != nullptr) {
      const OperatorProgress::Busy busy(*progress_);
      if (auto block = next_of_left()) return counted(std::move(block));
    }
    left_is_over_ = !read_left();
    progress_->count_task();
  }
  if (schema_ == nullptr) know_left(nullptr);
  const OperatorProgress::Busy busy(*progress_);
  return counted(rest_of_right());
}

}  // namespace cadre::data
