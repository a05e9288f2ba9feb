// cadre importance: which hyper-parameters made good trials good.
#include "cadre/tune/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/scopes.h"
#include "control/objective.h"

namespace cadre::cli {
namespace {

using tune::Importance;

constexpr std::size_t kBarWidth = 20;
constexpr double kEnoughGoodTrials = 10;

struct ImportanceOptions {
  std::string experiment = {};
  std::string metric = {};
  std::string mode = {};
  std::string scope = "last";
  std::vector<std::string> keys = {};
  double quantile = tune::ImportanceOptions{}.quantile;
  bool json = false;
};

// Returns a bar that is as long as a share of the widest one, with blanks up to its width.
std::string bar(double share) {
  static constexpr std::array<std::string_view, 8> eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const bool utf8 = encoding() == base::Encoding::utf8;
  const auto length = static_cast<std::size_t>(std::lround(share * kBarWidth * (utf8 ? 8 : 1)));
  const std::size_t whole = utf8 ? length / 8 : length;
  std::string text;
  for (std::size_t i = 0; i < whole; ++i) text += utf8 ? "█" : "#";
  if (utf8) text += eighths[length % 8];
  return text + std::string(kBarWidth - base::display_width(text), ' ');
}

Table table_of(const std::vector<Importance>& importances) {
  const double most = importances.front().importance;
  Table table{.columns = {column("hyper-parameter", 0), column("importance", 0, true), column("", 2, true),
                          column("trials", 1, true)}};
  for (const Importance& one : importances) {
    const std::array cells{text_cell(one.key), number_cell(fmt::format("{:.1f} %", 100 * one.importance)),
                           number_cell(bar(one.importance / most)), number_cell(std::to_string(one.num_trials))};
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].cells.push_back(cells[i]);
  }
  return table;
}

List importance_documents(const std::vector<Importance>& importances) {
  List documents;
  for (const auto& [key, importance, num_trials] : importances)
    documents.push_back(Dict{{"key", key}, {"importance", importance}, {"trials", num_trials}});
  return documents;
}

void run(const ImportanceOptions& options) {
  const tune::ResultGrid grid = open_experiment(options.experiment);
  const auto [metric, mode] = direction_of(grid.summary(), options.metric, options.mode);
  const std::vector<Importance> found = importances(grid, {.metric = metric,
                                                           .mode = mode,
                                                           .scope = scope_of(options.scope),
                                                           .quantile = options.quantile,
                                                           .keys = options.keys});
  const auto exploited = std::ranges::count_if(grid, [](const tune::Result& trial) { return !trial.exploits.empty(); });
  if (options.json) {
    return write_json(Dict{{"metric", metric},
                           {"mode", control::to_string(mode)},
                           {"scope", options.scope},
                           {"quantile", options.quantile},
                           {"left_out", exploited},
                           {"importances", importance_documents(found)}});
  }
  const std::size_t trials = std::ranges::max(found, {}, &Importance::num_trials).num_trials;
  const double good = std::ceil(options.quantile * static_cast<double>(trials));
  Page page;
  page.heading(fmt::format("Importance for the best {:.3g} % of {} trials by {} ({}, {})", 100 * options.quantile,
                           trials, shown(metric), control::to_string(mode), options.scope));
  page.table(table_of(found));
  if (exploited > 0)
    page.line(fmt::format("{} more trials have configs that exploits have changed, and do not count", exploited),
              Style::dim);
  if (good < kEnoughGoodTrials)
    page.line(fmt::format("Only {:.0f} good trials: more trials, or a larger --quantile, give firmer figures", good),
              Style::dim);
  page.write();
}

}  // namespace

void add_importance(Command& program) {
  const auto options = std::make_shared<ImportanceOptions>();
  Command command = program.add_command("importance", "Show which hyper-parameters made good trials good");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  command.option("--metric", &options->metric, "Metric to compare by [the experiment's]");
  command.option("--mode", &options->mode, "max or min [the experiment's]").one_of({"max", "min"});
  add_scope(command, &options->scope);
  command.option("--quantile", &options->quantile, "The share of trials that are good").show_default();
  command.option("--keys", &options->keys, "Compare only these: lr,model/width").separated_by(',');
  command.flag("--json", &options->json, "One JSON document with everything");
  command.footer(kScopesFooter);
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
