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

// Collects the columns of one trial after the other.
class CurveCollector {
 public:
  CurveCollector(const tune::ResultGrid& grid, const std::vector<std::set<std::size_t>>& needed,
                 const std::vector<bool>& chosen)
      : grid_(grid), needed_(needed), chosen_(chosen), columns_(grid.size()) {
    curves_.kept_origins.resize(grid.size());
    kept_.resize(grid.size());
    for (const std::string& name :
         {grid.summary().metric, std::string(tune::TRAINING_ITERATION), std::string(tune::TIME_TOTAL_S)}) {
      if (!name.empty()) column_of(name);
    }
  }

  Curves collect() {
    grid_.for_each_result([&](const tune::Result& trial, std::size_t index, const Metrics& metrics) {
      const auto at = static_cast<std::size_t>(&trial - &*grid_.begin());
      if (!chosen_[at]) return;
      add(metrics.dict(), "", index, trial.num_results());
      if (index + 1 == trial.num_results()) end_trial(at, trial.num_results());
    });
    for (std::size_t i = 0; i < grid_.size(); ++i) curves_.trials.push_back(trial_value(i));
    curves_.columns_in_all += curves_.names.size();
    return std::move(curves_);
  }

 private:
  // Returns the index of a column, or names_.size() if there are too many.
  std::size_t column_of(const std::string& path) {
    const auto found = by_path_.find(path);
    if (found != by_path_.end()) return found->second;
    if (curves_.names.size() >= Curves::kMostColumns) {
      if (left_out_.insert(path).second) ++curves_.columns_in_all;
      return Curves::kMostColumns;
    }
    by_path_.emplace(path, curves_.names.size());
    curves_.names.push_back(path);
    return curves_.names.size() - 1;
  }

  void add(const Dict& entries, const std::string& prefix, std::size_t row, std::size_t rows) {
    for (const auto& [key, value] : entries) {
      const std::string path = prefix + key;
      if (value.is_dict()) {
        add(value.dict(), path + "/", row, rows);
      } else if (value.is_number() && !says_nothing(path)) {
        const std::size_t column = column_of(path);
        if (column >= Curves::kMostColumns) continue;
        if (trial_.size() <= column) trial_.resize(column + 1);
        if (trial_[column].empty()) trial_[column].assign(rows, kNone);
        trial_[column][row] = value.get<double>();
      }
    }
  }

  std::size_t limit() const {
    const std::size_t trials = static_cast<std::size_t>(std::ranges::count(chosen_, true));
    const std::size_t numbers = std::max<std::size_t>(trials, 1) * std::max<std::size_t>(curves_.names.size(), 1);
    return std::clamp(Curves::kMostNumbers / numbers, Curves::kFewestRows, Curves::kMostRows);
  }

  // Moves the columns of the trial that was read to those of the experiment, without the rows that are not kept.
  void end_trial(std::size_t at, std::size_t rows) {
    std::vector<std::vector<double>> compared;
    for (std::size_t column = 0; column < trial_.size(); ++column) {
      if (!trial_[column].empty() && !tune::is_counter(curves_.names[column])) compared.push_back(trial_[column]);
    }
    kept_[at] = kept_rows(compared, rows, needed_[at], limit());
    if (kept_[at].size() < rows) ++curves_.reduced;
    for (std::vector<double>& column : trial_) {
      std::vector<double> kept;
      if (!column.empty()) {
        for (const std::size_t row : kept_[at]) kept.push_back(column[row]);
      }
      columns_[at].push_back(std::move(kept));
    }
    for (const std::size_t row : needed_[at]) {
      const auto place = std::ranges::lower_bound(kept_[at], row);
      if (place != kept_[at].end() && *place == row)
        curves_.kept_origins[at][row] = static_cast<std::size_t>(place - kept_[at].begin());
    }
    trial_.clear();
  }

  static Value column_value(const std::vector<double>& column) {
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

  Value trial_value(std::size_t at) const {
    if (kept_[at].empty()) return {};
    std::vector<std::int64_t> counts(grid_[at].exploits.size() + 1);
    for (const std::size_t row : kept_[at]) ++counts[segment_of(grid_[at], row)];
    List items;
    items.emplace_back(List(counts.begin(), counts.end()));
    for (const std::vector<double>& column : columns_[at]) items.push_back(column_value(column));
    return items;
  }

  const tune::ResultGrid& grid_;
  const std::vector<std::set<std::size_t>>& needed_;
  const std::vector<bool>& chosen_;
  Curves curves_ = {};
  std::unordered_map<std::string, std::size_t> by_path_ = {};
  std::set<std::string> left_out_ = {};
  std::vector<std::vector<double>> trial_ = {};            // columns of the trial that is being read
  std::vector<std::vector<std::vector<double>>> columns_;  // by trial and column
  std::vector<std::vector<std::size_t>> kept_ = {};        // by trial
};

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

Curves read_curves(const tune::ResultGrid& grid, const std::vector<std::vector<CurveOrigin>>& origins,
                   const std::vector<bool>& chosen) {
  // Lines begin and end at exploits, so these results are kept.
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
  return CurveCollector(grid, needed, chosen).collect();
}

}  // namespace cadre::report
