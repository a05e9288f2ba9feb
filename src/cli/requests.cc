// cadre stop, pause, resume, enqueue: requests to the controller of a running experiment.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/requests.h"
#include "cli/toml.h"
#include "control/beginning.h"
#include "control/requests.h"
#include "publish/place.h"
#include "store/run_directory.h"
#include "tune/experiment_directory.h"
#include "tune/requests.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

struct RequestsOptions {
  std::string experiment = {};
  std::vector<std::string> trials = {};
  std::vector<std::string> values = {};
};

void say(const std::string& text) {
  Page page;
  page.line(shown(text));
  page.write();
}

// Makes a request and says what follows from it.
void ask(const std::string& experiment, const Dict& request, const std::string& advice = "") {
  control::ask_controller(controlled_directory(experiment), request);
  say(consequence_of(request) + advice);
}

// Makes all requests before it waits for the first answer. Throws InvalidArgument if some are refused; the others are
// carried out.
void ask_all(const std::string& experiment, const std::vector<Dict>& requests) {
  const fs::path directory = controlled_directory(experiment);
  std::list<control::PendingRequest> pending;
  for (const Dict& request : requests) pending.emplace_back(directory, request, control::kAnswerTimeout);
  std::string refusals;
  for (const Dict& request : requests) {
    try {
      pending.front().wait();
      say(consequence_of(request));
    } catch (const InvalidArgument& refusal) {
      refusals += fmt::format("{}{}", refusals.empty() ? "" : "\n", refusal.what());
    }
    pending.pop_front();
  }
  if (!refusals.empty()) throw InvalidArgument(refusals);
}

// "3" is trial 00003.
std::string trial_id(const std::string& name) {
  const bool is_number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
  return is_number ? tune::trial_id(static_cast<tune::TrialIndex>(std::stoul(name))) : name;
}

void stop(const RequestsOptions& options) {
  if (options.trials.empty()) return ask(options.experiment, tune::stop_request());
  std::vector<Dict> requests;
  for (const std::string& trial : options.trials) requests.push_back(tune::stop_request(trial_id(trial)));
  ask_all(options.experiment, requests);
}

void pause(const RequestsOptions& options) {
  ask(options.experiment, tune::pause_request(), "; to go on: cadre resume " + options.experiment);
}

void resume(const RequestsOptions& options) { ask(options.experiment, tune::resume_request()); }

void enqueue(const RequestsOptions& options) {
  Config values;
  for (const std::string& text : options.values) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      throw InvalidArgument(text + ": write KEY=VALUE, as in lr=0.1 or model/width=64");
    values.set(text.substr(0, equals), toml_value(text.substr(equals + 1)));
  }
  ask(options.experiment, tune::enqueue_request(values));
}

}  // namespace

fs::path controlled_directory(const std::string& name) {
  if (publish::published_at(name))
    throw InvalidArgument(
        fmt::format("{} is a published copy: ask in the directory, on the machine, where its controller runs", name));
  const fs::path directory = find_directory(name).directory;
  if (control::kind_in(directory) == store::training_run_tenant.kind)
    throw InvalidArgument(directory.string() +
                          " is a training run: Ctrl-C ends it, and when it is started again it goes on");
  return directory;
}

Dict checked_request(const Dict& content) {
  const Config given(content);
  const auto is = [&](const char* name) { return given.contains("do") && given.at("do") == Value(name); };
  Dict request;
  if (is("stop"))
    request = given.contains("trial") ? tune::stop_request(given.get<std::string>("trial")) : tune::stop_request();
  if (is("pause")) request = tune::pause_request();
  if (is("resume")) request = tune::resume_request();
  if (is("enqueue")) request = tune::enqueue_request(Config(given.get<Dict>("values")));
  if (request.size() != content.size() || content.empty())
    throw InvalidArgument(to_json(content) +
                          " is no request: write {\"do\": \"stop\"}, with a \"trial\" or without, {\"do\": \"pause\"}, "
                          "{\"do\": \"resume\"} or {\"do\": \"enqueue\", \"values\": {...}}");
  return request;
}

std::string consequence_of(const Dict& request) {
  const Config content(request);
  const auto what = content.get<std::string>("do");
  if (what == "stop" && content.contains("trial"))
    return fmt::format("trial {} stops at its next report", content.get<std::string>("trial"));
  if (what == "stop") return "all trials stop at their next report";
  if (what == "pause") return "trials stop at their next report";
  return what == "resume" ? "the experiment goes on" : "the next trial has these values";
}

void add_requests(Command& program) {
  const auto options = std::make_shared<RequestsOptions>();
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
