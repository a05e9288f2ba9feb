// A searcher that is told of trials, and a restore of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cadre/tune/searcher.h"

namespace cadre::test_support {

// A space with a domain of each kind, parameters in options of a choice, and a choice within another.
inline tune::Space space_of_all_kinds() {
  using namespace tune;
  return {{"uniform", uniform(-2, 3)},
          {"quniform", quniform(-0.25, 0.6, 0.1)},
          {"loguniform", loguniform(1e-5, 10)},
          {"qloguniform", qloguniform(0.5, 8, 0.5)},
          {"randn", randn(3, 2)},
          {"qrandn", qrandn(3, 2, 0.5)},
          {"randint", randint(-3, 4)},
          {"qrandint", qrandint(-7, 20, 3)},
          {"lograndint", lograndint(1, 40)},
          {"qlograndint", qlograndint(2, 64, 2)},
          {"one", randint(7, 8)},
          {"ordinal", ordinal({"small", "medium", 5})},
          {"constant", 5},
          {"model", choice({Space{{"name", "tree"}, {"depth", randint(1, 9)}},
                            Space{{"name", "net"},
                                  {"width", lograndint(8, 1024)},
                                  {"activation", choice({Space{{"slope", uniform(0, 1)}}, "relu", "gelu"})}}})}};
}

// A space of so many numbers from 0 to 1.
inline tune::Space cube(int dimensions) {
  tune::Space space;
  for (int i = 0; i < dimensions; ++i) space.emplace_back("x" + std::to_string(i), tune::uniform(0, 1));
  return space;
}

class ToldSearcher {
 public:
  ToldSearcher(tune::AnySearcher options, tune::SearcherSetting setting)
      : options_(std::move(options)),
        setting_(std::move(setting)),
        parameters_(setting_.space),
        searcher_(options_.make(setting_)) {}

  // Adds a trial with its suggestion, which must be a whole config of the space; or with a config given.
  tune::TrialIndex add() { return add(next()); }
  tune::TrialIndex add(const Config& config) {
    if (!parameters_.point_of(config)) throw InvalidArgument(to_json(config.value()) + " is not in the space");
    trials_.push_back({config});
    searcher_->on_trial_add(static_cast<tune::TrialIndex>(trials_.size() - 1), config);
    return static_cast<tune::TrialIndex>(trials_.size() - 1);
  }
  void end(tune::TrialIndex trial, const Metrics& result, tune::TrialStatus status = tune::TrialStatus::terminated) {
    trials_[trial].end = {status, result};
    searcher_->on_trial_end(trial, status, result);
  }
  // Returns the suggestion for the next trial.
  Config next() const { return searcher_->suggest(static_cast<tune::TrialIndex>(trials_.size())).value(); }

  const Config& config(tune::TrialIndex trial) const { return trials_[trial].config; }
  // Returns a config as a point: the coordinates are those of tune::Parameters.
  tune::Point point(tune::TrialIndex trial) const { return *parameters_.point_of(config(trial)); }
  const tune::Parameters& parameters() const { return parameters_; }
  const tune::Searcher& searcher() const { return *searcher_; }

  // Returns a new searcher that was told the same as a restore does, with the state as it was stored.
  ToldSearcher restored() const {
    ToldSearcher other(options_, setting_);
    other.trials_ = trials_;
    for (tune::TrialIndex trial = 0; trial < trials_.size(); ++trial)
      other.searcher_->on_trial_add(trial, trials_[trial].config);
    for (tune::TrialIndex trial = 0; trial < trials_.size(); ++trial) {
      if (const auto& end = trials_[trial].end) other.searcher_->on_trial_end(trial, end->first, end->second);
    }
    other.searcher_->load(base::parse_json(to_json(searcher_->save()), "the state"));
    return other;
  }

 private:
  struct Trial {
    Config config;
    std::optional<std::pair<tune::TrialStatus, Metrics>> end = {};
  };

  tune::AnySearcher options_;
  tune::SearcherSetting setting_;
  tune::Parameters parameters_;
  std::unique_ptr<tune::Searcher> searcher_;
  std::vector<Trial> trials_ = {};
};

}  // namespace cadre::test_support
