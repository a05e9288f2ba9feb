// cadre replay: the schedule of configs that led to a trial.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/host_object.h"
#include "base/output_file.h"
#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "publish/restore.h"
#include "tune/experiment_directory.h"
#include "tune/schedulers/policy_file.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

struct ReplayOptions {
  std::string experiment = {};
  std::string trial = {};
  std::string output = {};
  bool json = false;
};

// A config, used from an iteration on.
struct Step {
  std::int64_t iteration = 0;
  std::string trial = {};  // tag of the trial that ran it
  Config config = {};
};

std::vector<Step> read_schedule(const fs::path& policy) {
  std::vector<Step> schedule;
  for (tune::PolicyLine& line : tune::parse_policy_lines(base::read_file(policy), policy.string())) {
    if (schedule.empty()) schedule.push_back({0, std::move(line.donor), std::move(line.donor_config)});
    schedule.push_back({line.donor_iteration, std::move(line.target), std::move(line.new_config)});
  }
  return schedule;
}

// Returns the top-level keys whose value is not the same in all steps.
std::vector<std::string> changing_keys(const std::vector<Step>& schedule) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : schedule.front().config) {
    for (const Step& step : schedule) {
      const Value* other = step.config.find(key);
      if (other != nullptr && *other == value) continue;
      keys.push_back(key);
      break;
    }
  }
  return keys;
}

void show(const tune::ResultGrid& grid, const tune::Result& trial, const fs::path& policy,
          const std::vector<Step>& schedule) {
  Page page;
  page.heading(fmt::format("What led to trial {} of {}", trial.trial_id, shown(grid.summary().name)));
  page.field("policy", shown(place_text(policy)));
  const std::vector<std::string> keys = changing_keys(schedule);
  Dict constant;
  for (const auto& [key, value] : schedule.front().config) {
    if (std::ranges::find(keys, key) == keys.end()) constant.emplace_back(key, value);
  }
  if (!constant.empty()) page.field("unchanged", values_text(constant));
  Table table{.columns = {column("from iter", 0), column("trial", 1)}};
  for (const std::string& key : keys) table.columns.push_back(column(key, 0));
  for (const Step& step : schedule) {
    table.columns[0].cells.push_back(number_cell(std::to_string(step.iteration)));
    table.columns[1].cells.push_back(text_cell(step.trial.substr(0, step.trial.find('_'))));
    for (std::size_t i = 0; i < keys.size(); ++i)
      table.columns[i + 2].cells.push_back(value_cell(step.config.find(keys[i])));
  }
  page.table(table);
  page.write();
}

void run(const ReplayOptions& options) {
  const tune::ResultGrid grid = open_experiment(options.experiment);
  const tune::Result& trial =
      options.trial.empty() || options.trial == "best" ? grid.get_best_result() : find_trial(grid, options.trial);
  const fs::path policy = grid.experiment_path() / tune::policy_file_name(trial.trial_id);
  publish::fetch_file(grid.experiment_path(), policy.filename());
  std::error_code unreadable;
  if (!fs::exists(policy, unreadable))
    throw NotFound(trial.exploits.empty()
                       ? "trial " + trial.trial_id + " has run with one config, and there is nothing to replay: " +
                             to_json(base::without_host_objects(trial.config.value()))
                       : "the policy of trial " + trial.trial_id + " is not there: " + policy.string() +
                             "; an experiment that is continued writes it anew");
  const std::vector<Step> schedule = read_schedule(policy);
  if (!options.output.empty()) {
    base::write_output_file(options.output, base::read_file(policy));
    if (!options.json) return write_path(options.output);
  }
  if (!options.json) return show(grid, trial, policy, schedule);
  List steps;
  for (const Step& step : schedule)
    steps.push_back(Dict{{"iteration", step.iteration},
                         {"trial", step.trial},
                         {"config", base::without_host_objects(step.config.value())}});
  write_json(Dict{{"trial_id", trial.trial_id}, {"policy", place_text(policy)}, {"schedule", std::move(steps)}});
}

}  // namespace

void add_replay(Command& program) {
  const auto options = std::make_shared<ReplayOptions>();
  Command command = program.add_command("replay", "Show the schedule of configs that led to a trial");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  command.option("trial", &options->trial, "Its id or number [the best trial]");
  command.option("-o,--output", &options->output, "Copy the policy to a file");
  command.flag("--json", &options->json, "One JSON document with everything");
  command.footer("The file is what PopulationBasedTrainingReplay takes.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
