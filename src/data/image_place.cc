#include "data/image_place.h"

#include <fmt/format.h>

namespace cadre::data {

std::string place_of_image(const Batch& batch, std::string_view column, std::int64_t row, std::string_view row_column) {
  constexpr std::string_view kPath = "path";
  std::string place = fmt::format("column \"{}\", row {}", column, row);
  const Batch one = batch.slice(row, 1);
  if (batch.has(row_column) && batch.type(row_column) == "int64" && one.null_count(row_column) == 0)
    place += fmt::format(", which is row {} of the dataset", one.values<std::int64_t>(row_column).front());
  if (batch.has(kPath) && batch.type(kPath) == "string" && one.null_count(kPath) == 0)
    place += fmt::format(", of {}", one.texts(kPath).front());
  return place;
}

}  // namespace cadre::data
