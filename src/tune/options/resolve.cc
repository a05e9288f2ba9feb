#include <utility>
#include <vector>

#include "control/objective.h"
#include "tune/domain.h"
#include "tune/options/options.h"
#include "tune/result_keys.h"

namespace cadre::tune {
namespace {

void complete(Thresholds& thresholds, const Objective& objective) {
  for (auto& [metric, threshold] : thresholds) {
    if (threshold.mode) continue;
    if (metric == objective.name) {
      threshold.mode = objective.mode;
    } else if (is_counter(metric)) {
      threshold.mode = Mode::max;
    }
  }
}

}  // namespace

TunerOptions resolve(const Trainable& trainable, TunerOptions options, std::vector<std::string>& notes) {
  TuneConfig& tune = options.tune_config;
  options.param_space = with_sorted_bounds(options.param_space, "param_space ", notes);
  if (tune.scheduler.empty()) tune.scheduler = FIFO{};
  tune.scheduler = AnyScheduler(tune.scheduler.held().completed(options, notes));
  if (tune.searcher.empty()) tune.searcher = RandomSearch{};
  tune.searcher = AnySearcher(tune.searcher.held().completed(options, notes));
  control::complete(tune.metric, tune.mode);
  const Objective objective(tune.metric.name, tune.mode);
  complete(options.run_config.stop.thresholds, objective);
  std::vector<AnyStopper> stoppers = options.run_config.stop.stoppers;
  for (AnyStopper& stopper : stoppers) {
    if (!stopper.empty()) stopper = AnyStopper(stopper.held().completed(options, notes));
  }
  options.run_config.stop.stoppers = std::move(stoppers);
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (checkpoints.checkpoint_score_attribute)
    control::complete(*checkpoints.checkpoint_score_attribute, checkpoints.checkpoint_score_order, objective);
  const TrainableMethods& methods = trainable.methods;
  if (!checkpoints.checkpoint_frequency) checkpoints.checkpoint_frequency = methods.is_class ? 0 : 1;
  if (!checkpoints.checkpoint_at_end && (!methods.is_class || methods.save_checkpoint))
    checkpoints.checkpoint_at_end = true;
  return options;
}

}  // namespace cadre::tune
