#include "data/stream.h"

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <algorithm>

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

std::optional<Block> Concatenated::next() {
  for (; at_ < inputs_.size(); ++at_) {
    auto block = inputs_[at_]->next();
    if (!block) continue;
    if (schema_ == nullptr) schema_ = (*block)->schema();
    require_same_columns(*schema_, "the first one", *(*block)->schema(), "one of the datasets that are concatenated");
    if ((*block)->schema()->Equals(*schema_, false)) return block;
    std::vector<int> order;
    for (const std::string& column : schema_->field_names()) order.push_back((*block)->schema()->GetFieldIndex(column));
    return *(*block)->SelectColumns(order);
  }
  return std::nullopt;
}

void Concatenated::cancel() {
  for (const auto& input : inputs_) input->cancel();
}

}  // namespace cadre::data
