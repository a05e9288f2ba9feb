// The tables of a ResultGrid: results as CSV and as lines of JSON.
#include <algorithm>
#include <ostream>
#include <unordered_map>

#include "base/csv.h"
#include "base/host_object.h"
#include "base/json.h"
#include "cadre/error.h"
#include "cadre/tune/result.h"
#include "control/objective.h"
#include "loggers/flat_row.h"
#include "tune/results/result_table.h"

namespace cadre::tune {
namespace {

// Returns one row: "trial_id" and "status", the reported metrics, "config".
Dict row_of(const Result& trial, const Metrics* metrics, const Config& config) {
  Dict row{{"trial_id", trial.trial_id}, {"status", to_string(trial.status)}};
  if (metrics != nullptr) {
    for (const auto& [key, value] : *metrics) {
      if (key != "trial_id" && key != "status" && key != "config") row.emplace_back(key, value);
    }
  }
  row.emplace_back("config", base::without_host_objects(config.value()));
  return row;
}

// Chooses the result that a trial's row shows.
class RowChoice {
 public:
  RowChoice(std::string metric, Mode mode) : metric_(std::move(metric)), mode_(mode) {}

  // Returns true if `metrics` replaces the result chosen so far. Chooses the last result if none has the metric.
  bool take(const Metrics& metrics) {
    const std::optional<double> number = control::finite_number(metrics, metric_);
    if (!number) return !best_;
    const double score = mode_ == Mode::max ? *number : -*number;
    if (best_ && score <= *best_) return false;
    best_ = score;
    return true;
  }
  void reset() { best_.reset(); }

 private:
  std::string metric_;
  Mode mode_;
  std::optional<double> best_ = {};
};

// The columns, in the order of their first appearance.
class Columns {
 public:
  void add(const Dict& flat_row) {
    for (const auto& [key, value] : flat_row) {
      if (numbers_.try_emplace(key, names_.size()).second) names_.push_back(key);
    }
  }
  std::string header() const {
    std::string line;
    for (const std::string& name : names_) {
      if (!line.empty()) line += ',';
      base::append_csv_cell(line, name);
    }
    return line + '\n';
  }
  std::string line(const Dict& flat_row) const {
    std::vector<const Value*> cells(names_.size());
    for (const auto& [key, value] : flat_row) cells[numbers_.at(key)] = &value;
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += ',';
      if (cells[i] != nullptr) base::append_csv_cell(line, *cells[i]);
    }
    return line + '\n';
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

void check(const std::ostream& out) {
  if (!out) throw StorageError("the table cannot be written: the stream has failed");
}

// Returns the last result of the trial's own. Reads other results only if the trial has just taken over a donor's.
Metrics last_own_result(const Result& trial) {
  const bool is_donors =
      !trial.exploits.empty() && trial.rows != nullptr && trial.exploits.back().first_result == trial.num_results();
  if (!is_donors) return trial.metrics;
  std::vector<Metrics> history = trial.metrics_history();
  return history.empty() ? Metrics() : std::move(history.back());
}

void visit_last(const ResultGrid& grid, const std::function<void(const Dict&)>& visit) {
  for (const Result& trial : grid) {
    const std::size_t count = trial.num_results();
    const Metrics metrics = last_own_result(trial);
    visit(row_of(trial, &metrics, count == 0 ? trial.config : trial.config_at(count - 1)));
  }
}

void visit_best(const ResultGrid& grid, RowChoice choice, const std::function<void(const Dict&)>& visit) {
  std::vector<Dict> rows;
  for (const Result& trial : grid) rows.push_back(row_of(trial, nullptr, trial.config));
  grid.for_each_result([&](const Result& trial, std::size_t index, const Metrics& metrics) {
    if (index == 0) choice.reset();
    if (choice.take(metrics))
      rows[static_cast<std::size_t>(&trial - &*grid.begin())] = row_of(trial, &metrics, trial.config_at(index));
  });
  std::ranges::for_each(rows, visit);
}

}  // namespace

void visit_rows(const ResultGrid& grid, const TableOptions& options, const std::function<void(const Dict&)>& visit) {
  switch (options.rows) {
    case Rows::last:
      return visit_last(grid, visit);
    case Rows::best: {
      const auto [metric, mode] =
          control::direction_of(options.metric, options.mode, {grid.summary().metric, grid.summary().mode});
      return visit_best(grid, RowChoice(metric, mode), visit);
    }
    case Rows::all:
      grid.for_each_result([&](const Result& trial, std::size_t index, const Metrics& metrics) {
        visit(row_of(trial, &metrics, trial.config_at(index)));
      });
  }
}

void ResultGrid::write_csv(std::ostream& out, const TableOptions& options) const {
  // Two passes, because a later row may have another column, and the rows may not fit into memory.
  Columns columns;
  columns.add({{"trial_id", {}}, {"status", {}}});
  visit_rows(*this, options, [&](const Dict& row) { columns.add(loggers::flatten(row)); });
  out << columns.header();
  visit_rows(*this, options, [&](const Dict& row) {
    out << columns.line(loggers::flatten(row));
    check(out);
  });
  check(out.flush());
}

void ResultGrid::write_json_lines(std::ostream& out, const TableOptions& options) const {
  visit_rows(*this, options, [&](const Dict& row) {
    out << base::to_json(row) << '\n';
    check(out);
  });
  check(out.flush());
}

}  // namespace cadre::tune
