// The callbacks of an experiment, called in order. A callback that throws is switched off.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/callback.h"
#include "tune/experiment.h"

namespace cadre::tune {

class CallbackList {
 public:
  CallbackList(Callbacks callbacks, const Experiment& experiment, std::filesystem::path directory,
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
  // Returns the warnings for the user since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  struct Entry {
    std::shared_ptr<Callback> callback;
    std::string name;
    bool is_on = true;
    Value state = {};
  };
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
  // Runs `call` for one callback, or for each, unless it is switched off; `hook` is its name in warnings.
  template <class Call>
  void call(Entry& entry, const char* hook, Call call);
  template <class Call>
  void for_each(const char* hook, Call call);
  void start(const Launch& launch);
  void commit(const CommitCheckpoint& checkpoint);
  void end(const LogEnd& ended);

  std::vector<Entry> entries_;
  List others_ = {};  // saved states of callbacks that this program does not have
  const Experiment& experiment_;
  std::filesystem::path directory_;
  std::string trainable_;
  std::int64_t iteration_ = 0;
  std::string saved_ = {};
  std::vector<std::string> warnings_ = {};
};

}  // namespace cadre::tune
