#include "tune/console/trial_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cut_text.h"
#include "base/host_object.h"
#include "tune/result_keys.h"

namespace cadre::tune::console {
namespace {

constexpr std::size_t kLongestCell = 256;  // bytes of a value that are looked at for a cell

view::Cell text_cell(std::string text, view::Style style = view::Style::plain) {
  return {std::move(text), style, false};
}

view::Style style_of(TrialStatus status) {
  switch (status) {
    case TrialStatus::running:
      return view::Style::plain;
    case TrialStatus::terminated:
      return view::Style::good;
    case TrialStatus::error:
      return view::Style::bad;
    case TrialStatus::stopped:
    case TrialStatus::paused:
    case TrialStatus::pending:
      break;
  }
  return view::Style::dim;
}

template <class CellOf>
view::Column column_of(const std::vector<TrialRow>& trials, view::Column column, CellOf cell_of) {
  for (const TrialRow& trial : trials) column.cells.push_back(cell_of(trial));
  return column;
}

view::Style emphasis(const TrialRow& trial) { return trial.best ? view::Style::bold : view::Style::plain; }

// Returns a column whose name comes from the user.
view::Column named_column(const std::string& name, int rank, base::Encoding encoding) {
  return {{base::printable(name, encoding), view::Style::bold, false}, rank, {}};
}

view::Column parameter_column(const std::vector<TrialRow>& trials, const std::string& path, int rank,
                              base::Encoding encoding) {
  return column_of(trials, named_column(path, rank, encoding),
                   [&](const TrialRow& trial) { return value_cell(trial.config->find(path), encoding); });
}

}  // namespace

view::Table trial_table(const std::vector<TrialRow>& trials, const TrialColumns& columns, base::Encoding encoding) {
  view::Table table{.title = "Trials", .columns = {id_column(trials), status_column(trials)}};
  for (const std::string& path : columns.parameters)
    table.columns.push_back(parameter_column(trials, path, 3, encoding));
  table.columns.push_back(result_column(trials, "iter", result_key::training_iteration, 2, encoding));
  table.columns.push_back(seconds_column(trials, "total time (s)", result_key::time_total_s, 4));
  for (std::size_t i = 0; i < std::min(columns.metrics.size(), kMainMetrics); ++i) {
    const std::string& path = columns.metrics[i];
    table.columns.push_back(metric_column(trials, path, columns.metric, path == columns.metric ? 1 : 5, encoding));
  }
  return table;
}

view::Column id_column(const std::vector<TrialRow>& trials) {
  return column_of(trials, {text_cell("Trial", view::Style::bold), 0, {}},
                   [](const TrialRow& trial) { return text_cell(trial.id, emphasis(trial)); });
}

view::Column status_column(const std::vector<TrialRow>& trials) {
  return column_of(trials, {text_cell("status", view::Style::bold), 0, {}},
                   [](const TrialRow& trial) { return text_cell(to_string(trial.status), style_of(trial.status)); });
}

view::Column metric_column(const std::vector<TrialRow>& trials, const std::string& path, const std::string& metric,
                           int rank, base::Encoding encoding) {
  return column_of(trials, named_column(path, rank, encoding), [&](const TrialRow& trial) {
    view::Cell cell = value_cell(trial.last_result->find(path), encoding);
    if (path == metric) cell.style = emphasis(trial);
    return cell;
  });
}

view::Column result_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank,
                           base::Encoding encoding) {
  return column_of(trials, number_column(head, rank),
                   [&](const TrialRow& trial) { return value_cell(trial.last_result->find(key), encoding); });
}

view::Column seconds_column(const std::vector<TrialRow>& trials, const char* head, std::string_view key, int rank) {
  return column_of(trials, number_column(head, rank), [&](const TrialRow& trial) {
    const std::optional<double> seconds = trial.last_result->number(key);
    return number_cell(seconds ? fmt::format("{:.3f}", *seconds) : "");
  });
}

std::string counts_text(const StatusCounts& counts, const char* separator, const char* word) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0)
      text += fmt::format("{}{}{} {}", text.empty() ? "" : separator, counts[i], word, to_string(kStatusOrder[i]));
  }
  return text;
}

StatusCounts status_counts(const ResultGrid& grid) {
  StatusCounts counts = {};
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = std::ranges::count(grid, kStatusOrder[i], &Result::status);
  return counts;
}

view::Cell number_cell(std::string text) { return {std::move(text), view::Style::plain, true}; }

view::Cell value_cell(const Value* value, base::Encoding encoding) {
  if (value == nullptr || value->is_null()) return {};
  if (value->is_integer()) return number_cell(to_json(*value));
  if (value->is_double()) return number_cell(fmt::format("{:.6g}", value->get<double>()));
  if (base::text_of_host_object(*value) != nullptr) {
    const Value plain = base::without_host_objects(*value);
    return value_cell(&plain, encoding);
  }
  const std::string text = value->is_string() ? value->get<std::string>() : to_json(base::without_host_objects(*value));
  return text_cell(base::printable(base::last_bytes(text, kLongestCell), encoding));
}

view::Column number_column(std::string head, int rank) {
  return {{std::move(head), view::Style::bold, true}, rank, {}};
}

}  // namespace cadre::tune::console
