// A searcher that may be computing a suggestion in another thread. Meanwhile it is told nothing: what has happened
// waits until the suggestion has come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cadre/tune/searcher.h"
#include "tune/trial.h"

namespace cadre::tune {

class AskedSearcher {
 public:
  // A call that waits: of on_trial_end() with a status, else of on_result().
  struct Untold {
    TrialIndex trial = 0;
    std::optional<TrialStatus> status = {};
    Metrics metrics = {};
  };
  struct State {
    std::optional<TrialIndex> asked = {};  // the trial whose suggestion is awaited
    std::vector<Untold> untold = {};       // since then
    bool has_none = false;                 // it had no suggestion, and no trial has ended since then
    bool is_finished = false;              // it suggests nothing any more
  };

  explicit AskedSearcher(std::unique_ptr<Searcher> searcher) : searcher_(std::move(searcher)) {}

  // For suggest(), save() and debug_string(), in any thread.
  const Searcher& get() const { return *searcher_; }
  bool is_asked() const { return state_.asked.has_value(); }
  bool has_none() const { return state_.has_none; }

  // Begins the time in which suggest() may run in another thread.
  void ask(TrialIndex trial);
  // Ends it: tells the searcher what has happened meanwhile.
  void end_asking();
  bool is_finished() const { return state_.is_finished; }
  // Remembers an answer without a suggestion.
  void set_has_none(bool is_finished) {
    state_.has_none = true;
    state_.is_finished = is_finished;
  }

  // No trial is added while the searcher is asked.
  void on_trial_add(TrialIndex trial, const Config& config) { searcher_->on_trial_add(trial, config); }
  void on_result(TrialIndex trial, const Metrics& result);
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result);

  // `load` restores a state, and what Searcher::save() returned then, into a new searcher that all trials were added
  // to. `ended` are those that have ended, in order.
  const State& state() const { return state_; }
  void load(State state, const Value& saved, std::span<const Trial* const> ended);

 private:
  std::unique_ptr<Searcher> searcher_;
  State state_ = {};
};

}  // namespace cadre::tune
