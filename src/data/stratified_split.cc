#include "data/stratified_split.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>

#include "cadre/data/expression.h"
#include "cadre/data/iterate.h"
#include "cadre/error.h"
#include "data/keys.h"

namespace cadre::data {
namespace {

// The class of each row of a dataset, and the number of rows of each class.
struct Classes {
  std::vector<std::uint32_t> of_rows = {};
  std::vector<std::int64_t> rows = {};
};

Classes classes_of(const Dataset& dataset, const std::string& column) {
  Classes classes;
  std::unique_ptr<KeyNumbers> keys;
  for (const Batch& batch : dataset.select_columns({column}).iter_batches({.batch_size = std::nullopt})) {
    require_keys(*batch.arrow()->schema(), {column}, "train_test_split");
    if (keys == nullptr) keys = std::make_unique<KeyNumbers>(batch.arrow()->schema()->fields());
    const auto numbers = keys->add(key_columns(batch.arrow(), {column}));
    classes.rows.resize(static_cast<std::size_t>(keys->count()));
    for (std::int64_t row = 0; row < numbers->length(); ++row) {
      classes.of_rows.push_back(numbers->Value(row));
      ++classes.rows[numbers->Value(row)];
    }
  }
  return classes;
}

// Returns a column's name that the dataset does not have.
std::string unused_name(const Dataset& dataset) {
  std::string name = "is_for_test";
  const std::vector<std::string> names = dataset.columns();
  while (std::ranges::find(names, name) != names.end()) name += '_';
  return name;
}

}  // namespace

std::vector<std::int64_t> test_rows_of_classes(const std::vector<std::int64_t>& class_rows, std::int64_t test_rows) {
  const std::int64_t all = std::accumulate(class_rows.begin(), class_rows.end(), std::int64_t{0});
  std::vector<std::int64_t> chosen;
  std::vector<double> exact;
  for (const std::int64_t rows : class_rows) {
    exact.push_back(static_cast<double>(rows) * static_cast<double>(test_rows) / static_cast<double>(all));
    chosen.push_back(std::min(std::max<std::int64_t>(static_cast<std::int64_t>(exact.back()), 1), rows - 1));
  }
  std::int64_t missing = test_rows - std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
  const std::int64_t step = missing > 0 ? 1 : -1;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>> next;
  const auto add = [&](std::size_t i) {
    const std::int64_t after = chosen[i] + step;
    if (after > 0 && after < class_rows[i])
      next.emplace(static_cast<double>(step) * (static_cast<double>(chosen[i]) - exact[i]), i);
  };
  for (std::size_t i = 0; i < chosen.size(); ++i) add(i);
  for (; missing != 0 && !next.empty(); missing -= step) {
    const std::size_t i = next.top().second;
    next.pop();
    chosen[i] += step;
    add(i);
  }
  return chosen;
}

std::pair<Dataset, Dataset> stratified_split(const Dataset& dataset, const std::string& column,
                                             std::int64_t test_rows) {
  const Classes classes = classes_of(dataset, column);
  const auto count = std::ssize(classes.rows);
  const std::int64_t train_rows = std::ssize(classes.of_rows) - test_rows;
  if (test_rows < count || train_rows < count || std::ranges::find(classes.rows, 1) != classes.rows.end())
    throw InvalidArgument(fmt::format(
        "train_test_split cannot be stratified: column \"{}\" has {} different values, the rarest of which is in {} "
        "row(s), and {} rows would be for training and {} for the test: each value needs 2 rows or more, and each part "
        "a row for each value. Choose another size, or a column with fewer values",
        column, count, *std::ranges::min_element(classes.rows), train_rows, test_rows));
  const std::vector<std::int64_t> chosen = test_rows_of_classes(classes.rows, test_rows);
  std::vector<std::int64_t> left(chosen.size());  // rows for training that are still to come
  for (std::size_t i = 0; i < chosen.size(); ++i) left[i] = classes.rows[i] - chosen[i];
  std::vector<bool> marks;
  for (const std::uint32_t one : classes.of_rows) marks.push_back(left[one]-- <= 0);
  const std::string name = unused_name(dataset);
  const std::vector<std::string> columns = dataset.columns();
  const Dataset marked = dataset.zip({from_batches({Batch({{name, Column(marks)}})})});
  const auto part = [&](bool is_test) { return marked.filter(data::column(name) == is_test).select_columns(columns); };
  return {part(false), part(true)};
}

}  // namespace cadre::data
