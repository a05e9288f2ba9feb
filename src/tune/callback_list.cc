#include "tune/callback_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/overload.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "tune/result_keys.h"

namespace cadre::tune {

CallbackList::CallbackList(const Callbacks& callbacks, const Experiment& experiment, std::filesystem::path directory,
                           std::string trainable)
    : GuardedCallbacks(callbacks),
      experiment_(experiment),
      directory_(std::move(directory)),
      trainable_(std::move(trainable)) {}

void CallbackList::setup(const ExperimentInfo& experiment) {
  for_each("setup", [&](Callback& callback) { callback.setup(experiment); });
}

void CallbackList::step_begins() {
  for_each("on_step_begin", [this](Callback& callback) { callback.on_step_begin(iteration_, Trials(*this)); });
}

void CallbackList::step_ends() {
  ++iteration_;
  for_each("on_step_end", [this](Callback& callback) { callback.on_step_end(iteration_, Trials(*this)); });
}

void CallbackList::show_result(ResultReported& event) {
  for_each("on_trial_result", [&](Callback& callback) {
    Metrics result = event.report.metrics;
    callback.on_trial_result(iteration_, Trials(*this), info_of(event.trial), result);
    base::check_metrics(result);
    event.report.metrics = std::move(result);
  });
}

void CallbackList::show(const Action& action) {
  if (entries_.empty()) return;
  std::visit(base::Overload{[&](const Launch& launch) { start(launch); },
                            [&](const TakeOver& take_over) { start(take_over.start); },
                            [&](const CommitCheckpoint& checkpoint) { commit(checkpoint); },
                            [&](const RecordDecision& decision) {
                              if (decision.kind != DecisionKind::retry) return;
                              for_each("on_trial_recover", [&](Callback& callback) {
                                callback.on_trial_recover(iteration_, Trials(*this), info_of(decision.trial));
                              });
                            },
                            [&](const LogEnd& ended) { end(ended); }, [](const auto&) {}},
             action);
}

void CallbackList::start(const Launch& launch) {
  for_each("on_trial_start",
           [&](Callback& callback) { callback.on_trial_start(iteration_, Trials(*this), info_of(launch.trial)); });
  if (launch.checkpoint.empty()) return;
  for_each("on_trial_restore",
           [&](Callback& callback) { callback.on_trial_restore(iteration_, Trials(*this), info_of(launch.trial)); });
}

void CallbackList::commit(const CommitCheckpoint& checkpoint) {
  for_each("on_checkpoint", [&](Callback& callback) {
    callback.on_checkpoint(iteration_, Trials(*this), info_of(checkpoint.trial),
                           Checkpoint::from_directory(directory_ / checkpoint.directory));
  });
  for_each("on_trial_save",
           [&](Callback& callback) { callback.on_trial_save(iteration_, Trials(*this), info_of(checkpoint.trial)); });
}

void CallbackList::end(const LogEnd& ended) {
  const bool failed = ended.status == TrialStatus::error;
  for_each(failed ? "on_trial_error" : "on_trial_complete", [&](Callback& callback) {
    if (failed) {
      callback.on_trial_error(iteration_, Trials(*this), info_of(ended.trial));
    } else {
      callback.on_trial_complete(iteration_, Trials(*this), info_of(ended.trial));
    }
  });
}

void CallbackList::end() {
  for_each("on_experiment_end", [this](Callback& callback) { callback.on_experiment_end(Trials(*this)); });
}

TrialInfo CallbackList::info_of(const Trial& trial) const {
  TrialInfo info{.trial_id = trial.id,
                 .trial_name = trainable_ + "_" + trial.id,
                 .status = trial.status,
                 .config = trial.config,
                 .last_result = trial.last_result,
                 .checkpoint = {},
                 .path = directory_ / trial.directory,
                 .error = trial.error};
  if (trial.latest_checkpoint) {
    const checkpoint::CheckpointRecord& latest = experiment_.checkpoint_registry().get(*trial.latest_checkpoint);
    info.checkpoint = Checkpoint::from_directory(directory_ / latest.directory);
  }
  return info;
}

std::optional<std::string> CallbackList::changed_state() {
  if (entries_.empty()) return std::nullopt;
  for (Entry& entry : entries_) {
    call(entry, "get_state", [&](const Callback& callback) {
      Value state = callback.get_state();
      if (base::stored_bytes(state) > base::max_stored_value_bytes ||
          base::is_deeper_than(state, base::max_result_depth))
        throw InvalidArgument(fmt::format("its state has more than {} bytes or {} levels", base::max_stored_value_bytes,
                                          base::max_result_depth));
      entry.state = std::move(state);
    });
  }
  List states;
  for (const Entry& entry : entries_) {
    if (!entry.state.is_null()) states.push_back(Dict{{"name", entry.name}, {"state", entry.state}});
  }
  states.insert(states.end(), others_.begin(), others_.end());
  std::string text = states.empty() ? "" : to_json(Value(states));
  if (text == saved_) return std::nullopt;
  return saved_ = std::move(text);
}

// Gives each callback the first unused state under its name.
void CallbackList::load_state(const std::string& state) {
  saved_ = state;
  if (state.empty()) return;
  List states = base::parse_json(state, "the callbacks' state in the store").items();
  for (Entry& entry : entries_) {
    const auto own = std::ranges::find_if(
        states, [&](const Value& one) { return Config(one).get<std::string>("name") == entry.name; });
    if (own == states.end()) continue;
    entry.state = Config(*own).at("state");
    states.erase(own);
    call(entry, "set_state", [&](Callback& callback) { callback.set_state(entry.state); });
  }
  for (const Value& other : states)
    warnings_.push_back(
        fmt::format("the experiment was run with a callback {} that remembers something, and goes on "
                    "without it; give it in RestoreOptions::callbacks",
                    Config(other).get<std::string>("name")));
  others_ = std::move(states);
}

}  // namespace cadre::tune
