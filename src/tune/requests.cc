#include "tune/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cadre/error.h"
#include "tune/held_options.h"
#include "tune/options/check_search_space.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

TrialIndex running_trial(const std::string& id, const Experiment& experiment) {
  const std::vector<Trial>& trials = experiment.trials();
  const auto found = std::ranges::find(trials, id, &Trial::id);
  if (found == trials.end())
    throw InvalidArgument(fmt::format("there is no trial \"{}\"; {}", id,
                                      trials.empty()
                                          ? "there are none yet"
                                          : fmt::format("there are {} to {}", trials.front().id, trials.back().id)));
  if (found->ended()) throw InvalidArgument(fmt::format("trial {} has ended: {}", id, to_string(found->status)));
  return found->index;
}

ConfigEnqueued enqueued(Config values, TunerOptions options) {
  Faults faults;
  check_point(values.dict(), options.param_space, "value", faults);
  faults.throw_as("the config cannot be enqueued");
  options.tune_config.points_to_evaluate = {values};
  check_search(options);                                                    // some searchers take none
  check_held(options.tune_config.scheduler, "scheduler", options, faults);  // a replay trains one trial
  faults.throw_as("the config cannot be enqueued");
  return {std::move(values)};
}

}  // namespace

Dict stop_request() { return {{"do", "stop"}}; }
Dict stop_request(const std::string& trial_id) { return {{"do", "stop"}, {"trial", trial_id}}; }
Dict pause_request() { return {{"do", "pause"}}; }
Dict resume_request() { return {{"do", "resume"}}; }
Dict enqueue_request(const Config& values) { return {{"do", "enqueue"}, {"values", values.dict()}}; }

Event to_event(const Dict& request, const Experiment& experiment, const TunerOptions& options) {
  const auto refuse_if = [](bool is_so, const char* why) {
    if (is_so) throw InvalidArgument(why);
  };
  const Config content(request);
  const auto what = content.get<std::string>("do");
  if (what == "resume") {
    refuse_if(!experiment.paused(), "the experiment is not paused");
    return ResumeRequested{};
  }
  refuse_if(experiment.interrupted(), "the experiment is being interrupted");
  if (what == "stop" && content.contains("trial"))
    return TrialStopRequested{running_trial(content.get<std::string>("trial"), experiment)};
  refuse_if(experiment.ends(), "all trials are being stopped");
  if (what == "stop") return StopRequested{};
  if (what == "pause") {
    refuse_if(experiment.paused(), "the experiment is paused already");
    return PauseRequested{};
  }
  if (what == "enqueue") return enqueued(Config(content.get<Dict>("values")), options);
  throw InvalidArgument(fmt::format("the controller does not know what \"{}\" is: it is of another version", what));
}

}  // namespace cadre::tune
