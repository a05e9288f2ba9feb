// Conversion of conditions to Arrow's expressions.
#pragma once

#include <arrow/compute/expression.h>

#include <memory>
#include <string>
#include <vector>

#include "cadre/data/expression.h"
#include "data/plan.h"

namespace cadre::data {

// Returns the names of the columns in a condition, each once.
std::vector<std::string> columns_of(const Expression& expression);

// Binds a condition to a schema. Throws InvalidArgument if a column is missing or has an unsuitable type.
arrow::compute::Expression bind_condition(const Expression& condition, const std::shared_ptr<arrow::Schema>& schema);

// Returns true if a row may match because of a NaN, which the minimum and maximum of a column do not cover.
bool is_met_by_nan(const Expression& condition, const arrow::Schema& schema);

// Returns the rows of a block that match.
Block keep_matching(const Block& block, const arrow::compute::Expression& bound, arrow::MemoryPool* pool);

}  // namespace cadre::data
