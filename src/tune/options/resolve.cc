#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "base/overload.h"
#include "control/objective.h"
#include "tune/domain.h"
#include "tune/options/check_scheduler.h"
#include "tune/options/options.h"
#include "tune/result_keys.h"
#include "tune/schedulers/policy_file.h"

namespace cadre::tune {
namespace {

using Items = std::shared_ptr<const Entries>;
using Nested = std::shared_ptr<const Space>;

// Puts the bounds of all domains in order, with a note for each that was reversed.
class BoundsSorter {
 public:
  explicit BoundsSorter(std::vector<std::string>& notes) : notes_(notes) {}

  SpaceEntry sorted(const SpaceEntry& entry, const std::string& name) {
    return std::visit(
        base::Overload{[&](const Domain& domain) { return SpaceEntry(sorted(domain, name)); },
                       [&](const GridSearch& grid) { return SpaceEntry(GridSearch{sorted(*grid.options, name)}); },
                       [&](const Items& items) { return SpaceEntry(Entries(*sorted(*items, name))); },
                       [&](const Nested& space) { return SpaceEntry(sorted(*space, name + " > ")); },
                       [](const auto& other) { return SpaceEntry(other); }},
        entry.data());
  }
  Space sorted(const Space& space, const std::string& path) {
    Space result;
    for (const auto& [key, entry] : space) result.emplace_back(key, sorted(entry, path + "\"" + key + "\""));
    return result;
  }
  Mutations sorted(const Mutations& mutations, const std::string& path) {
    Mutations result;
    for (const auto& [key, mutation] : mutations) {
      const std::string name = path + "\"" + key + "\"";
      const auto* domain = std::get_if<Domain>(&mutation.data());
      const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data());
      result.emplace_back(key, domain   ? Mutation(sorted(*domain, name))
                               : nested ? Mutation(sorted(**nested, name + " > "))
                                        : mutation);
    }
    return result;
  }

 private:
  Domain sorted(Domain domain, const std::string& name) {
    if (const auto* choice = std::get_if<Choice>(&domain)) return Choice{sorted(*choice->options, name)};
    const std::string given = to_string(domain);
    if (put_bounds_in_order(domain))
      notes_.push_back(
          fmt::format("{}: {} has its bounds in the wrong order; taken as {}", name, given, to_string(domain)));
    return domain;
  }
  Items sorted(const Entries& entries, const std::string& name) {
    Entries result;
    for (const SpaceEntry& entry : entries) result.push_back(sorted(entry, name));
    return std::make_shared<const Entries>(std::move(result));
  }

  std::vector<std::string>& notes_;
};

// Returns the keys of param_space whose values the schedule replaces.
std::vector<std::string> overruled_keys(const Space& space, const Config& initial) {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : space) {
    const Value* value = initial.find(key);
    const auto* constant = std::get_if<Value>(&entry.data());
    if (value != nullptr && (constant == nullptr || *constant != *value)) keys.push_back(key);
  }
  return keys;
}

void read_schedule(PopulationBasedTrainingReplay& replay, const Space& space, std::vector<std::string>& notes) {
  if (replay.schedule || replay.policy_file.empty()) return;
  try {
    replay.schedule = read_policy_file(replay.policy_file);
  } catch (const InvalidArgument& error) {
    control::Faults faults;
    faults.add(std::string(kReplay) + "policy_file", error.what());
    faults.throw_if_any("the experiment");
  }
  const std::vector<std::string> keys = overruled_keys(space, replay.schedule->initial_config);
  if (!keys.empty())
    notes.push_back(fmt::format("param_space {}: what is replayed has values of its own, which count instead",
                                fmt::join(keys, ", ")));
}

// Copies metric and direction between the TuneConfig and the scheduler, where one of them lacks them.
void share(TuneConfig& tune, PopulationBasedTraining& pbt) {
  control::complete(tune.metric, tune.mode);
  control::complete(pbt.metric, pbt.mode);
  if (tune.metric.name.empty()) tune.metric.name = pbt.metric.name;
  if (!tune.mode && (pbt.metric.name.empty() || pbt.metric.name == tune.metric.name)) tune.mode = pbt.mode;
  control::complete(pbt.metric, pbt.mode, {tune.metric.name, tune.mode});
}

void complete(Stop& stop, const Objective& objective) {
  for (auto& [metric, threshold] : stop.thresholds) {
    if (threshold.mode) continue;
    if (metric == objective.name) {
      threshold.mode = objective.mode;
    } else if (is_counter(metric)) {
      threshold.mode = Mode::max;
    }
  }
  const base::Overload complete{
      [&](TrialPlateauStopper& one) { control::complete(one.metric, one.mode, objective); },
      [&](ExperimentPlateauStopper& one) { control::complete(one.metric, one.mode, objective); }, [](const auto&) {}};
  for (Stopper& stopper : stop.stoppers) std::visit(complete, stopper);
}

}  // namespace

TunerOptions resolve(const Trainable& trainable, TunerOptions options, std::vector<std::string>& notes) {
  TuneConfig& tune = options.tune_config;
  BoundsSorter sorter(notes);
  options.param_space = sorter.sorted(options.param_space, "param_space ");
  if (auto* pbt = std::get_if<PopulationBasedTraining>(&tune.scheduler)) {
    pbt->hyperparam_mutations = sorter.sorted(pbt->hyperparam_mutations, "hyperparam_mutations ");
    share(tune, *pbt);
  }
  control::complete(tune.metric, tune.mode);
  const Objective objective(tune.metric.name, tune.mode);
  complete(options.run_config.stop, objective);
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (checkpoints.checkpoint_score_attribute)
    control::complete(*checkpoints.checkpoint_score_attribute, checkpoints.checkpoint_score_order, objective);
  if (auto* replay = std::get_if<PopulationBasedTrainingReplay>(&tune.scheduler))
    read_schedule(*replay, options.param_space, notes);
  const TrainableMethods& methods = trainable.methods;
  if (!checkpoints.checkpoint_frequency) checkpoints.checkpoint_frequency = methods.is_class ? 0 : 1;
  if (!checkpoints.checkpoint_at_end && (!methods.is_class || methods.save_checkpoint))
    checkpoints.checkpoint_at_end = true;
  return options;
}

}  // namespace cadre::tune
