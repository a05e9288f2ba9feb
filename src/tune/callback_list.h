// The callbacks of an experiment: passes them what happens, and keeps their states.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/callback.h"
#include "control/guarded_callbacks.h"
#include "tune/experiment.h"

namespace cadre::tune {

class CallbackList final : public control::GuardedCallbacks<Callback> {
 public:
  CallbackList(const Callbacks& callbacks, const Experiment& experiment, std::filesystem::path directory,
               std::string trainable);

  void setup(const ExperimentInfo& experiment);
  void step_begins();
  void step_ends();
  // Passes a result that counts to the callbacks before the core handles it; they may change it.
  void show_result(ResultReported& event);
  // Passes an action to the callbacks after it was performed. Most kinds of actions have no callback.
  void show(const Action& action);
  void end();

  // Returns the callbacks' state as JSON if it differs from the state returned or loaded last, otherwise nothing.
  std::optional<std::string> changed_state();
  void load_state(const std::string& state);

 private:
  class Trials final : public TrialList {
   public:
    explicit Trials(const CallbackList& list) : list_(list) {}
    std::size_t size() const override { return list_.experiment_.trials().size(); }
    TrialInfo operator[](std::size_t index) const override {
      return list_.info_of(list_.experiment_.trials().at(index));
    }

   private:
    const CallbackList& list_;
  };

  TrialInfo info_of(const Trial& trial) const;
  TrialInfo info_of(TrialIndex trial) const { return info_of(experiment_.trials().at(trial)); }
  void start(const Launch& launch);
  void commit(const CommitCheckpoint& checkpoint);
  void end(const LogEnd& ended);

  List others_ = {};  // saved states of callbacks that this program does not have
  const Experiment& experiment_;
  std::filesystem::path directory_;
  std::string trainable_;
  std::int64_t iteration_ = 0;
  std::string saved_ = {};
};

}  // namespace cadre::tune
