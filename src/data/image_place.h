// The place of an image in a batch, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cadre/data/batch.h"

namespace cadre::data {

// Returns a text such as: column "image", row 3, which is row 17 of the dataset, of images/a.png. The row's number in
// the dataset is in `row_column` (empty: none), the file in "path", a column that readers add; each may be missing.
std::string place_of_image(const Batch& batch, std::string_view column, std::int64_t row, std::string_view row_column);

}  // namespace cadre::data
