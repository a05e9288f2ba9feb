// cadre stop, pause, resume, enqueue: requests to the controller of a running experiment.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/toml.h"
#include "control/beginning.h"
#include "control/requests.h"
#include "store/run_directory.h"
#include "tune/experiment_directory.h"
#include "tune/requests.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string experiment = {};
  std::vector<std::string> trials = {};
  std::vector<std::string> values = {};
};

fs::path running_experiment(const std::string& name) {
  const Found found = find_directory(name);
  if (found.copy)
    throw InvalidArgument(
        fmt::format("{} is a published copy: ask in the directory, on the machine, where its controller runs", name));
  if (control::kind_in(found.directory) == store::training_run_tenant.kind)
    throw InvalidArgument(found.directory.string() +
                          " is a training run: Ctrl-C ends it, and when it is started again it goes on");
  return found.directory;
}

void ask(const std::string& experiment, const Dict& request) {
  control::ask_controller(running_experiment(experiment), request);
}

// "3" is trial 00003.
std::string trial_id(const std::string& name) {
  const bool is_number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
  return is_number ? tune::trial_id(static_cast<tune::TrialIndex>(std::stoul(name))) : name;
}

void say(const std::string& text) {
  Page page;
  page.line(shown(text));
  page.write();
}

void stop(const Options& options) {
  if (options.trials.empty()) {
    ask(options.experiment, tune::stop_request());
    return say("all trials stop at their next report");
  }
  for (const std::string& trial : options.trials) {
    ask(options.experiment, tune::stop_request(trial_id(trial)));
    say("trial " + trial_id(trial) + " stops at its next report");
  }
}

void pause(const Options& options) {
  ask(options.experiment, tune::pause_request());
  say("trials stop at their next report; to go on: cadre resume " + options.experiment);
}

void resume(const Options& options) {
  ask(options.experiment, tune::resume_request());
  say("the experiment goes on");
}

void enqueue(const Options& options) {
  TomlDocument document("", "enqueue");
  for (const std::string& value : options.values) {
    if (value.find('=') == value.npos || value.front() == '=')
      throw InvalidArgument(value + ": write KEY=VALUE, as in lr=0.1");
    document.change(value);
  }
  ask(options.experiment, tune::enqueue_request(Config(document.entries())));
  say("the next trial has these values");
}

}  // namespace

void add_requests(Command& program) {
  const auto options = std::make_shared<Options>();
  const char* const what = "Its directory or name";
  Command stops = program.add_command("stop", "Stop a running experiment, or some of its trials");
  stops.option("experiment", &options->experiment, what).required();
  stops.option("trials", &options->trials, "Their ids or numbers [all, and the experiment ends]");
  stops.footer(
      "Trials stop at their next report, or by force after the stop_grace_period. Of an\n"
      "experiment that was stopped nothing is left to restore; cadre tune --extend\n"
      "continues it. To continue it later: cadre pause, or Ctrl-C.");
  stops.on_call([options] { stop(*options); });

  Command pauses = program.add_command("pause", "Pause a running experiment");
  pauses.option("experiment", &options->experiment, what).required();
  pauses.footer(
      "Its trials stop at their next report, and their processes end, which frees what\n"
      "they use. Its program stays and waits. The pause does not count as running time.");
  pauses.on_call([options] { pause(*options); });

  Command resumes = program.add_command("resume", "Let a paused experiment go on");
  resumes.option("experiment", &options->experiment, what).required();
  resumes.on_call([options] { resume(*options); });

  Command enqueues = program.add_command("enqueue", "Add a trial with values of your own");
  enqueues.option("experiment", &options->experiment, what).required();
  enqueues.option("values", &options->values, "Values: lr=0.1 model/width=64").named("KEY=VALUE").required();
  enqueues.footer(
      "It is the next trial, in addition to num_samples. Keys that you leave out are\n"
      "drawn from the search space.");
  enqueues.on_call([options] { enqueue(*options); });
}

}  // namespace cadre::cli
