#include "tune/console/status_block.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/host_object.h"
#include "tune/console/trial_table.h"
#include "tune/result_keys.h"

namespace cadre::tune::console {
namespace {

constexpr std::size_t kLongestParams = 2000;  // columns for the best trial's parameters
constexpr std::size_t kFewestRows = 4;        // a second table with fewer rows, and fewer than the first, is left out

std::string best_text(const Trial& best, const std::vector<std::string>& parameters, const Focus& focus,
                      base::Encoding encoding) {
  Dict params;
  for (const std::string& path : parameters) {
    if (const Value* value = best.config.find(path)) params.emplace_back(path, base::without_host_objects(*value));
  }
  return fmt::format("Current best trial: {} with {}={:.6g} and params={}", best.id,
                     base::printable(focus.metric, encoding), best.last_result.get<double>(focus.metric),
                     base::first_columns(base::printable(to_json(params), encoding), kLongestParams, encoding));
}

// Uses MiB, or GiB from 1024 MiB on.
std::string bytes_text(std::uint64_t bytes) {
  constexpr double mib = 1 << 20;
  const double count = static_cast<double>(bytes) / mib;
  return count < 1024 ? fmt::format("{:.0f} MiB", count) : fmt::format("{:.1f} GiB", count / 1024);
}

std::string time_of_report(const Trial& trial, double now) {
  const std::optional<double> timestamp = trial.last_result.number(result_key::timestamp);
  if (!timestamp) return {};
  const std::tm then = fmt::localtime(static_cast<std::time_t>(*timestamp));
  const std::tm today = fmt::localtime(static_cast<std::time_t>(now));
  const bool same_day = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
  return same_day ? fmt::format("{:%H:%M:%S}", then) : fmt::format("{:%m-%d %H:%M}", then);
}

// Builds the tables of the trials, column by column.
class TrialTables {
 public:
  TrialTables(const ExperimentView& view, const Overview& overview, const Focus& focus, base::Encoding encoding)
      : view_(view), overview_(overview), focus_(focus), encoding_(encoding) {}

  view::Table main_table(const Selection& selection) const {
    return trial_table(rows_of(selection), columns_of(selection), encoding_);
  }

  view::Table progress_table(const Selection& selection, double now) const {
    const std::vector<TrialRow> rows = rows_of(selection);
    const TrialColumns columns = columns_of(selection);
    view::Table table{.title = "Trial progress", .columns = {id_column(rows)}};
    table.columns.push_back(result_column(rows, "since restore", result_key::iterations_since_restore, 2, encoding_));
    table.columns.push_back(seconds_column(rows, "iter time (s)", result_key::time_this_iter_s, 1));
    table.columns.push_back(column(selection, number_column("last report", 1),
                                   [&](const Trial& trial) { return number_cell(time_of_report(trial, now)); }));
    table.columns.push_back(counts(selection, "checkpoints", &Trial::checkpoints_made));
    table.columns.push_back(counts(selection, "attempt", &Trial::attempt));
    table.columns.push_back(counts(selection, "failures", &Trial::failures));
    for (std::size_t i = kMainMetrics; i < columns.metrics.size(); ++i)
      table.columns.push_back(metric_column(rows, columns.metrics[i], columns.metric, 3, encoding_));
    return table;
  }

 private:
  std::vector<TrialRow> rows_of(const Selection& selection) const {
    std::vector<TrialRow> rows;
    for (const TrialIndex index : selection.rows) {
      const Trial& trial = view_.trials[index];
      rows.push_back({trial.id, trial.status, &trial.config, &trial.last_result, index == overview_.best});
    }
    return rows;
  }

  TrialColumns columns_of(const Selection& selection) const {
    TrialColumns columns{.parameters = parameters_of(view_, selection, focus_), .metrics = {}, .metric = focus_.metric};
    columns.metrics = metrics_of(view_, selection, focus_, columns.parameters);
    return columns;
  }

  template <class CellOf>
  view::Column column(const Selection& selection, view::Column column, CellOf cell_of) const {
    for (const TrialIndex index : selection.rows) column.cells.push_back(cell_of(view_.trials[index]));
    return column;
  }

  view::Column counts(const Selection& selection, const char* head, std::int64_t Trial::* field) const {
    return column(selection, number_column(head, 2),
                  [&](const Trial& trial) { return number_cell(fmt::format("{}", trial.*field)); });
  }

  const ExperimentView& view_;
  const Overview& overview_;
  const Focus& focus_;
  base::Encoding encoding_;
};

// Returns the number of rows of `trials` that fit into a table of `lines` lines, if a line is needed for `hidden`
// trials or for the rows that do not fit.
std::size_t rows_that_fit(std::size_t trials, bool hidden, std::size_t lines) {
  const std::size_t frame = view::kTableFrameLines;
  if (frame + trials + (hidden ? 1 : 0) <= lines) return trials;
  return lines > frame + 1 ? lines - frame - 1 : 0;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0));
  if (whole < 60) return fmt::format("{:.1f}s", std::max(seconds, 0.0));
  std::string text;
  if (whole >= 86400) text += fmt::format("{}d ", whole / 86400);
  if (whole >= 3600) text += fmt::format("{}hr ", whole / 3600 % 24);
  return text + fmt::format("{}min {}s", whole / 60 % 60, whole % 60);
}

view::Lines format_summary(const ExperimentView& view, const Overview& overview, const Focus& focus,
                           const Moment& moment, const Page& page) {
  std::vector<std::string> texts{"Trial status: " + counts_text(overview.counts, " | ")};
  std::string times =
      fmt::format("Current time: {:%Y-%m-%d %H:%M:%S}. Total running time: {}",
                  fmt::localtime(static_cast<std::time_t>(moment.wall_seconds)), duration_text(moment.running_seconds));
  if (moment.sessions > 1) times += fmt::format(" in {} sessions", moment.sessions);
  if (moment.is_paused) times += "; paused until `cadre resume`";
  texts.push_back(std::move(times));
  std::string resources = "Logical resources: " + base::printable(view.resource_usage, page.encoding);
  if (moment.memory) {
    const auto& [used, total, own] = *moment.memory;
    resources += fmt::format(". Memory: {} of {} ({} ours)", bytes_text(used), bytes_text(total), bytes_text(own));
  }
  texts.push_back(std::move(resources));
  texts.push_back(base::printable(view.scheduler_state, page.encoding));
  if (!view.searcher_state.empty()) texts.push_back(base::printable(view.searcher_state, page.encoding));
  if (overview.best) {
    const auto parameters = parameters_of(view, {.rows = {*overview.best}}, focus);
    texts.push_back(best_text(view.trials[*overview.best], parameters, focus, page.encoding));
  }
  if (page.lines && texts.size() > *page.lines) texts.resize(*page.lines);
  view::Lines lines;
  for (const std::string& text : texts)
    lines.push_back({{page.lines ? base::first_columns(text, page.width, page.encoding) : text}});
  return lines;
}

view::Lines format_tables(const ExperimentView& view, const Overview& overview, const Focus& focus, double wall_seconds,
                          const Page& page) {
  const std::size_t most = std::min(page.rows, view.trials.size());
  const bool all = most == view.trials.size() && view.trials_to_come == 0;
  const auto rows_in = [&](std::size_t used) {
    return page.lines ? rows_that_fit(most, !all, *page.lines - std::min(*page.lines, used)) : most;
  };
  const TrialTables tables(view, overview, focus, page.encoding);
  view::Lines lines;
  const auto add = [&](const view::Table& table, const Selection& selection) {
    std::ranges::move(view::format_table(table, page.width, page.encoding), std::back_inserter(lines));
    const std::string hidden = counts_text(selection.hidden, ", ", " more");
    if (!hidden.empty())
      lines.push_back({{base::first_columns("... " + hidden, page.width, page.encoding), view::Style::dim}});
  };
  const std::size_t first = rows_in(0);
  if (first == 0) return lines;
  const auto select = [&](std::size_t count) {
    return page.ranked ? rank_trials(view, overview, focus, count) : select_trials(view, overview, count);
  };
  Selection selection = select(first);
  add(tables.main_table(selection), selection);
  const std::size_t second = rows_in(lines.size());
  if (second < std::min(first, kFewestRows)) return lines;
  if (second != first) selection = select(second);
  add(tables.progress_table(selection, wall_seconds), selection);
  return lines;
}

}  // namespace cadre::tune::console
