#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "loggers/result_keys.h"
#include "report/cell.h"
#include "report/kept_rows.h"
#include "tune/result_keys.h"
#include "tune/results/result_rows.h"

namespace cadre::report {
namespace {

namespace result_key = tune::result_key;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool says_nothing(std::string_view path) {
  return path == result_key::pid || path == result_key::time_since_restore ||
         path == result_key::iterations_since_restore || path == result_key::time_this_iter_s;
}

// Returns the number of the exploits before the result with an index.
std::size_t segment_of(const tune::Result& trial, std::size_t result) {
  const auto later = std::ranges::upper_bound(trial.exploits, result, {}, &tune::ExploitRecord::first_result);
  return static_cast<std::size_t>(later - trial.exploits.begin());
}

Value column_value(const std::vector<double>& column) {
  if (std::ranges::none_of(column, [](double number) { return std::isfinite(number); })) return 0;
  bool counts = column.size() > 1;
  for (std::size_t row = 0; counts && row < column.size(); ++row)
    counts = column[row] == column[0] + static_cast<double>(row) && column[0] == std::floor(column[0]);
  if (counts && std::abs(column[0]) < 1e15)
    return Dict{{"from", static_cast<std::int64_t>(column[0])}, {"count", column.size()}};
  List points;
  points.reserve(column.size());
  for (const double number : column) points.push_back(point_of(number));
  return points;
}

// Returns, for each trial, the results at which lines begin and end: those beside exploits, and where others continued.
std::vector<std::set<std::size_t>> needed_results(const tune::ResultGrid& grid,
                                                  const std::vector<std::vector<CurveOrigin>>& origins) {
  std::vector<std::set<std::size_t>> needed(grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i) {
    for (const tune::ExploitRecord& exploit : grid[i].exploits) {
      needed[i].insert(exploit.first_result);
      if (exploit.first_result > 0) needed[i].insert(exploit.first_result - 1);
    }
    for (const CurveOrigin& origin : origins[i]) {
      if (origin.result != CurveOrigin::kNoResult) needed[origin.trial].insert(origin.result);
    }
  }
  return needed;
}

}  // namespace

std::vector<std::vector<CurveOrigin>> origins_of(const tune::ResultGrid& grid) {
  std::unordered_map<std::string, std::size_t> by_path;
  for (std::size_t i = 0; i < grid.size(); ++i) by_path.emplace(grid[i].path.string(), i);
  std::vector<std::vector<CurveOrigin>> origins(grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const tune::Result& trial = grid[i];
    for (std::size_t k = 0; k < trial.exploits.size(); ++k) {
      CurveOrigin origin{.trial = i, .result = CurveOrigin::kNoResult};
      const auto source = by_path.find(trial.exploits[k].checkpoint.parent_path().string());
      if (source != by_path.end() && trial.rows != nullptr && k < trial.rows->donors.size()) {
        const tune::Result& donor = grid[source->second];
        const std::vector<std::int64_t>& own = donor.rows->own;
        const auto after = std::ranges::upper_bound(own, trial.rows->donors[k]);
        origin.trial = source->second;
        if (after != own.begin()) {
          origin.result = static_cast<std::size_t>(after - own.begin()) - 1;
          origin.segment = segment_of(donor, origin.result);
        }
      }
      origins[i].push_back(origin);
    }
  }
  return origins;
}

Curves CurveReader::read(const tune::ResultGrid& grid, const std::vector<std::vector<CurveOrigin>>& origins,
                         const std::vector<bool>& chosen) {
  trials_.resize(grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i) {
    if (!chosen[i]) trials_[i] = {};
  }
  read_results(grid, chosen);
  std::vector<std::set<std::size_t>> needed = needed_results(grid, origins);
  const std::size_t most = limit(chosen);
  Curves curves{.names = names_, .columns_in_all = names_.size() + left_out_.size()};
  for (std::size_t i = 0; i < grid.size(); ++i) {
    Trial& trial = trials_[i];
    const bool is_same_limit = trial.limit == most || trial.rows <= std::min(trial.limit, most);
    if (!trial.is_made || !is_same_limit || trial.exploits != grid[i].exploits.size() || trial.needed != needed[i]) {
      trial.needed = std::move(needed[i]);
      make_curve(trial, grid[i], most);
    }
    curves.trials.push_back(trial.curve);
    curves.kept_origins.push_back(trial.kept_origins);
    if (trial.kept < trial.rows) ++curves.reduced;
  }
  return curves;
}

void CurveReader::read_results(const tune::ResultGrid& grid, const std::vector<bool>& chosen) {
  for (const std::string& name :
       {grid.summary().metric, std::string(tune::TRAINING_ITERATION), std::string(tune::TIME_TOTAL_S)}) {
    if (!name.empty()) column_of(name);
  }
  const auto first = [&](std::size_t i) { return chosen[i] ? trials_[i].rows : grid[i].num_results(); };
  tune::detail::visit_results(grid, first, [&](const tune::Result& result, std::size_t index, const Metrics& metrics) {
    Trial& trial = trials_[static_cast<std::size_t>(&result - &*grid.begin())];
    trial.is_made = false;
    trial.rows = index + 1;
    add(trial, metrics.dict(), "", index);
    for (Column& column : trial.columns) {
      if (!column.empty()) column.resize(trial.rows, kNone);
    }
  });
}

// Returns the index of a column, or kMostColumns if there are too many.
std::size_t CurveReader::column_of(const std::string& path) {
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) return found->second;
  if (names_.size() >= Curves::kMostColumns) {
    left_out_.insert(path);
    return Curves::kMostColumns;
  }
  by_path_.emplace(path, names_.size());
  names_.push_back(path);
  return names_.size() - 1;
}

void CurveReader::add(Trial& trial, const Dict& entries, const std::string& prefix, std::size_t row) {
  for (const auto& [key, value] : entries) {
    const std::string path = prefix + key;
    if (value.is_dict()) {
      add(trial, value.dict(), path + "/", row);
    } else if (value.is_number() && !says_nothing(path)) {
      const std::size_t at = column_of(path);
      if (at >= Curves::kMostColumns) continue;
      if (trial.columns.size() <= at) trial.columns.resize(at + 1);
      trial.columns[at].resize(row + 1, kNone);
      trial.columns[at][row] = value.get<double>();
    }
  }
}

std::size_t CurveReader::limit(const std::vector<bool>& chosen) const {
  const std::size_t trials = static_cast<std::size_t>(std::ranges::count(chosen, true));
  const std::size_t numbers = std::max<std::size_t>(trials, 1) * std::max<std::size_t>(names_.size(), 1);
  return std::clamp(Curves::kMostNumbers / numbers, Curves::kFewestRows, Curves::kMostRows);
}

void CurveReader::make_curve(Trial& trial, const tune::Result& result, std::size_t limit) const {
  trial.is_made = true;
  trial.exploits = result.exploits.size();
  trial.limit = limit;
  trial.curve = {};
  trial.kept_origins.clear();
  std::vector<Column> compared;
  for (std::size_t i = 0; i < trial.columns.size() && trial.rows > limit; ++i) {
    if (!trial.columns[i].empty() && !tune::is_counter(names_[i])) compared.push_back(trial.columns[i]);
  }
  const std::vector<std::size_t> kept = kept_rows(compared, trial.rows, trial.needed, limit);
  trial.kept = kept.size();
  if (kept.empty()) return;
  std::vector<std::int64_t> counts(result.exploits.size() + 1);
  for (const std::size_t row : kept) ++counts[segment_of(result, row)];
  List items;
  items.emplace_back(List(counts.begin(), counts.end()));
  for (const Column& column : trial.columns) {
    Column shown;
    if (!column.empty()) {
      for (const std::size_t row : kept) shown.push_back(column[row]);
    }
    items.push_back(column_value(shown));
  }
  trial.curve = std::move(items);
  for (const std::size_t row : trial.needed) {
    const auto place = std::ranges::lower_bound(kept, row);
    if (place != kept.end() && *place == row) trial.kept_origins[row] = static_cast<std::size_t>(place - kept.begin());
  }
}

}  // namespace cadre::report
