#include "tune/program/check_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <variant>

#include "base/line_program.h"
#include "base/overload.h"
#include "cadre/error.h"
#include "tune/options/check_search_space.h"
#include "tune/program/child.h"
#include "tune/program/found_metrics.h"
#include "tune/program/metrics_file.h"
#include "tune/program/placeholders.h"
#include "tune/program/variables.h"
#include "worker/root_engine.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

bool may_have(const SpaceEntry& entry, std::string_view path);

// Returns true if some config of the space has a value at the path.
bool may_have(const Space& space, std::string_view path) {
  return std::ranges::any_of(space, [&](const auto& one) {
    const auto& [key, entry] = one;
    if (path == key) return true;
    return path.starts_with(key) && path.substr(key.size()).starts_with('/') &&
           may_have(entry, path.substr(key.size() + 1));
  });
}

bool any_may_have(const std::shared_ptr<const Entries>& options, std::string_view path) {
  return std::ranges::any_of(*options, [&](const SpaceEntry& option) { return may_have(option, path); });
}

bool may_have(const SpaceEntry& entry, std::string_view path) {
  return std::visit(base::Overload{[&](const std::shared_ptr<const Space>& nested) { return may_have(*nested, path); },
                                   [&](const GridSearch& grid) { return any_may_have(grid.options, path); },
                                   [&](const SampleFrom&) { return true; },
                                   [&](const Value& constant) {
                                     return constant.is_dict() && Config(constant.dict()).find(path) != nullptr;
                                   },
                                   [&](const Domain& domain) {
                                     const auto* choice = std::get_if<Choice>(&domain);
                                     return choice != nullptr && any_may_have(choice->options, path);
                                   },
                                   [](const auto&) { return false; }},
                    entry.data());
}

void check_placeholders(std::string_view text, const std::string& option, const Space& space, Faults& faults) {
  for (const std::string& name : placeholders_in(text)) {
    if (std::ranges::find(variable::all, name) != variable::all.end() || may_have(space, name)) continue;
    faults.add(option, fmt::format("\"{}\" has the placeholder {{{}}}, and the search space has no such key: it has {}",
                                   text, name, space.empty() ? "none" : keys_of(space)));
  }
}

// Returns true if the text differs from trial to trial.
bool depends_on_trial(std::string_view text) { return !placeholders_in(text).empty(); }

void check_can_be_started(const std::string& name, Faults& faults) {
  if (worker::has_cluster()) return;  // it must be there on the nodes, which are requested later
  if (base::can_be_started({name})) return;
  std::error_code error;
  const bool is_path = name.find('/') != name.npos;
  if (is_path && fs::is_regular_file(name, error)) {
    faults.add("command", name + " is not executable: make it so (chmod +x), or begin with its interpreter");
  } else if (is_path) {
    faults.add("command", "there is no program " + name);
  } else {
    faults.add("command", "there is no program " + name + " in PATH" +
                              (fs::exists(name, error) ? "; the one in this directory is ./" + name : ""));
  }
}

void check_metrics(const Program& program, const TunerOptions& options, Faults& faults) {
  for (const auto& [metric, pattern] : program.metric_patterns) {
    const std::string fault = fault_of_pattern(pattern);
    faults.unless(fault.empty(), "metric_patterns \"" + metric + "\"", fault);
  }
  const std::string& objective = options.tune_config.metric.name;
  faults.unless(program.metric_patterns.empty() || !program.metrics_file.empty() || objective.empty() ||
                    program.metric_patterns.contains(objective),
                "metric_patterns", "none is for \"" + objective + "\", the experiment's metric");
  if (program.metrics_file.empty()) return;
  try {
    MetricsFile::kind_of(program.metrics_file);
  } catch (const InvalidArgument& error) {
    faults.add("metrics_file", error.what());
  }
  const bool is_shared = !depends_on_trial(program.metrics_file) &&
                         (fs::path(program.metrics_file).is_absolute() ||
                          (!depends_on_trial(program.working_directory) && !options.run_config.chdir_to_trial_dir));
  faults.unless(!is_shared, "metrics_file",
                "all trials would write " + program.metrics_file +
                    ": give each a file of its own, as {CADRE_TRIAL_DIR}/" +
                    fs::path(program.metrics_file).filename().string());
}

}  // namespace

void check_program(const Program& program, const TunerOptions& options, Faults& faults) {
  const Space& space = options.param_space;
  check_can_be_started(program.command.front(), faults);
  for (const std::string& word : program.command) {
    faults.unless(word.find('\0') == word.npos, "command", "a word has a zero byte");
    if (&word != &program.command.front()) check_placeholders(word, "command", space, faults);
  }
  for (const auto& [name, value] : program.environment) {
    faults.unless(!name.empty() && name.find_first_of(std::string_view("=\0", 2)) == name.npos, "environment",
                  "\"" + name + "\" cannot be the name of a variable");
    check_placeholders(value, "environment \"" + name + "\"", space, faults);
  }
  check_placeholders(program.working_directory, "working_directory", space, faults);
  check_placeholders(program.metrics_file, "metrics_file", space, faults);
  check_metrics(program, options, faults);
  if (program.checkpoint_signal)
    faults.unless(signal_of(*program.checkpoint_signal).has_value(), "checkpoint_signal",
                  "\"" + *program.checkpoint_signal + "\" is no signal: SIGUSR1 is one");
  const double patience = program.stop_patience.count();
  faults.unless(std::isfinite(patience) && patience >= 0, "stop_patience", "it must be a time of 0 or more");
}

}  // namespace cadre::tune
