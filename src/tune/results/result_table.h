// The rows of the tables of a ResultGrid.
#pragma once

#include <functional>

#include "cadre/tune/result.h"

namespace cadre::tune {

// Calls `visit` with each row that the options ask for: "trial_id" and "status", the reported metrics, and under
// "config" the config that they were reported with. Throws as ResultGrid::write_csv, and exceptions of `visit`.
void visit_rows(const ResultGrid& grid, const TableOptions& options, const std::function<void(const Dict&)>& visit);

}  // namespace cadre::tune
