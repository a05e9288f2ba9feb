// Conditions in Arrow's terms.
#pragma once

#include <arrow/compute/expression.h>

#include <memory>
#include <string>
#include <vector>

#include "cadre/data/expression.h"
#include "data/plan.h"

namespace cadre::data {

// Names of the columns that it uses, each once.
std::vector<std::string> columns_of(const Expression& expression);

// A condition on rows of this schema. Throws InvalidArgument where they have no such column, or it does not fit it.
arrow::compute::Expression bind_condition(const Expression& condition, const std::shared_ptr<arrow::Schema>& schema);

// Whether a row may meet it because it has NaN: the least and the greatest value of a column say nothing of those.
bool is_met_by_nan(const Expression& condition, const arrow::Schema& schema);

// The rows of a block that meet it.
Block keep_matching(const Block& block, const arrow::compute::Expression& bound, arrow::MemoryPool* pool);

}  // namespace cadre::data
