#include "data/stream.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/source.h"

namespace cadre::data {

std::optional<Block> Rebatched::next() {
  std::vector<Block> parts;
  for (std::int64_t missing = rows_; missing > 0;) {
    Block block = std::exchange(rest_, nullptr);
    if (block == nullptr) {
      auto made = input_->next();
      if (!made) break;
      block = *std::move(made);
    }
    const std::int64_t taken = std::min(missing, block->num_rows());
    if (taken < block->num_rows()) {
      rest_ = block->Slice(taken);
      block = block->Slice(0, taken);
    }
    missing -= taken;
    parts.push_back(std::move(block));
  }
  if (parts.empty()) return std::nullopt;
  return join(parts, pool_);
}

std::optional<Block> Sliced::next() {
  while (!left_ || *left_ > 0) {
    auto block = input_->next();
    if (!block) return std::nullopt;
    const std::int64_t skipped = std::min(skip_, (*block)->num_rows());
    skip_ -= skipped;
    const std::int64_t kept = std::min((*block)->num_rows() - skipped, left_.value_or((*block)->num_rows()));
    if (kept == 0) continue;
    if (left_) *left_ -= kept;
    return (*block)->Slice(skipped, kept);
  }
  return std::nullopt;
}

std::optional<Block> Sampled::next() {
  while (auto block = input_->next()) {
    arrow::BooleanBuilder keep;
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < (*block)->num_rows(); ++i) {
      base::RandomStream random(sample_.seed, 0, base::Purpose::dataset_sample, row_++);
      const bool is_kept = random.uniform() < sample_.fraction;
      kept += is_kept ? 1 : 0;
      check(keep.Append(is_kept), "cannot sample rows");
    }
    if (kept == 0) continue;
    if (kept == (*block)->num_rows()) return block;
    const Block rows = keep_rows(*block, checked(keep.Finish(), "cannot sample rows"), pool_);
    // Rows without columns are not counted by the kernel.
    return arrow::RecordBatch::Make(rows->schema(), kept, rows->columns());
  }
  return std::nullopt;
}

std::shared_ptr<arrow::Schema> zipped_schema(const std::vector<std::shared_ptr<arrow::Schema>>& schemas) {
  arrow::FieldVector fields;
  std::set<std::string> names;
  for (const auto& schema : schemas) {
    for (const auto& field : schema->fields()) {
      std::string name = field->name();
      for (int suffix = 1; !names.insert(name).second; ++suffix) name = fmt::format("{}_{}", field->name(), suffix);
      fields.push_back(field->WithName(name));
    }
  }
  return arrow::schema(std::move(fields));
}

std::optional<Block> Zipped::next() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (rests_[i] == nullptr) rests_[i] = inputs_[i]->next().value_or(nullptr);
  }
  const auto ended = std::ranges::find(rests_, nullptr);
  if (ended != rests_.end()) {
    const auto other = std::ranges::find_if(rests_, [](const Block& rest) { return rest != nullptr; });
    if (other == rests_.end()) return std::nullopt;
    throw InvalidArgument(fmt::format(
        "zip needs datasets with equally many rows: dataset {} has {}, and dataset {} has more; limit() the longer one",
        ended - rests_.begin() + 1, rows_, other - rests_.begin() + 1));
  }
  std::int64_t count = rests_.front()->num_rows();
  for (const Block& rest : rests_) count = std::min(count, rest->num_rows());
  if (schema_ == nullptr) {
    std::vector<std::shared_ptr<arrow::Schema>> schemas;
    for (const Block& rest : rests_) schemas.push_back(rest->schema());
    schema_ = zipped_schema(schemas);
  }
  arrow::ArrayVector columns;
  for (Block& rest : rests_) {
    for (const auto& column : rest->columns()) columns.push_back(column->Slice(0, count));
    rest = rest->num_rows() == count ? nullptr : rest->Slice(count);
  }
  rows_ += count;
  return arrow::RecordBatch::Make(schema_, count, std::move(columns));
}

void Zipped::cancel() {
  for (const auto& input : inputs_) input->cancel();
}

namespace {

// Columns without nulls in one dataset may have some in another one.
std::shared_ptr<arrow::Schema> with_nullable_columns(const arrow::Schema& schema) {
  arrow::FieldVector fields;
  for (const auto& field : schema.fields()) fields.push_back(field->WithNullable(true));
  return arrow::schema(std::move(fields), schema.metadata());
}

}  // namespace

std::optional<Block> Concatenated::next() {
  for (; at_ < inputs_.size(); ++at_) {
    auto block = inputs_[at_]->next();
    if (!block) continue;
    if (schema_ == nullptr) schema_ = with_nullable_columns(*(*block)->schema());
    require_same_columns(*schema_, "the first one", *(*block)->schema(), "one of the datasets that are concatenated");
    arrow::ArrayVector columns;
    for (const std::string& column : schema_->field_names()) columns.push_back((*block)->GetColumnByName(column));
    return arrow::RecordBatch::Make(schema_, (*block)->num_rows(), std::move(columns));
  }
  return std::nullopt;
}

void Concatenated::cancel() {
  for (const auto& input : inputs_) input->cancel();
}

}  // namespace cadre::data
