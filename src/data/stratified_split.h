// Splits that keep the proportions of the values of a column.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cadre/data/dataset.h"

namespace cadre::data {

// Returns how many rows of each class are for the test, of which there are `test_rows` in all: the exact shares,
// rounded down, and one more for those with the largest rests. Each class has a row in each part; others make up for
// that, those first that are farthest from their shares. Both parts need as many rows as there are classes, and each
// class 2. Source: scikit-learn's StratifiedShuffleSplit, but for ties, in which the first class comes first, and
// for the rows in each part.
std::vector<std::int64_t> test_rows_of_classes(const std::vector<std::int64_t>& class_rows, std::int64_t test_rows);

// Returns the rows for training, and for the test the last rows of each class. Reads the column. Throws InvalidArgument
// if a class would be missing in one of the parts.
std::pair<Dataset, Dataset> stratified_split(const Dataset& dataset, const std::string& column, std::int64_t test_rows);

}  // namespace cadre::data
