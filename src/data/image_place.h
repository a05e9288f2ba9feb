// The place of an image in a batch, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cadre/data/batch.h"

namespace cadre::data {

// Returns the column and the row, with the row's number in the dataset and its file if columns have them: `row_column`
// (empty: none), and "path", which readers add.
std::string place_of_image(const Batch& batch, std::string_view column, std::int64_t row, std::string_view row_column);

}  // namespace cadre::data
