// Gives ended trials to a RegretBoundTerminator, for the test in Python that compares it with Optuna's.
//
// Reads JSON documents from standard input, one a line. The first one has {"param_space", "stopper", "seed"}: the
// first two as an experiment stores them. Each further one is a trial that has terminated: {"config", "result"}. It is
// answered with a document: "reason", of stop_all() or null, and the bound of all trials so far, with what it is made
// of.
#include <iostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "tune/description.h"
#include "tune/held_options.h"
#include "tune/stoppers/regret_bound.h"
#include "tune/trial.h"

namespace {

using namespace cadre;
using namespace cadre::tune;

List list_of(const auto& numbers) {
  List list;
  for (const double number : numbers) list.push_back(number);
  return list;
}

}  // namespace

int main() {
  std::string line;
  std::getline(std::cin, line);
  const Config setting(base::parse_json(line, "the first line").dict());
  StopperSetting made_with{.seed = setting.get<std::uint64_t>("seed")};
  read_stored(made_with.space, Stored(setting.at("param_space")));
  AnyStopper held;
  read_stored(held, Stored(setting.at("stopper")));
  const auto& options = held.get<RegretBoundTerminator>();
  const std::unique_ptr<Stopper> stopper = held.make(made_with);
  const Parameters parameters(made_with.space);
  const RegretBoundEvaluator evaluator(parameters, options.top_trials_ratio, options.min_n_trials, made_with.seed);
  std::vector<EvaluatedPoint> evaluations;
  const checkpoint::CheckpointRegistry checkpoints{CheckpointConfig()};
  Trial trial{.status = TrialStatus::terminated};
  while (std::getline(std::cin, line)) {
    const Config row(base::parse_json(line, "a line").dict());
    trial.config = Config(row.at("config").dict());
    trial.last_result = Metrics(row.at("result").dict());
    stopper->on_trial_end(TrialView(trial, checkpoints));
    ++trial.index;
    const auto value = trial.last_result.get<double>(options.metric.name);
    evaluations.push_back({parameters.point_of(trial.config).value(), options.mode == Mode::max ? -value : value});
    const RegretBound bound = evaluator(evaluations);
    const Eigen::VectorXd& logarithms = bound.model.hyperparameters().kernel;
    List points;
    for (const auto& point : bound.model.data().points.rowwise()) points.push_back(list_of(point));
    const std::optional<std::string> reason = stopper->stop_all();
    std::cout << base::to_json(Dict{{"reason", reason ? Value(*reason) : Value()},
                                    {"bound", bound.bound},
                                    {"beta", bound.beta},
                                    {"scale", bound.scale},
                                    {"lowest", list_of(bound.lowest)},
                                    {"kernel", list_of(logarithms)},
                                    {"log_noise", bound.model.hyperparameters().log_noise},
                                    {"points", std::move(points)},
                                    {"values", list_of(bound.model.data().values)}})
              << std::endl;
  }
}
