#include "cadre/tune/schedulers/population_based_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <span>

#include "base/random.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "tune/experiment_directory.h"
#include "tune/functions.h"
#include "tune/result_keys.h"
#include "tune/schedulers/explore.h"
#include "tune/trial.h"

namespace cadre::tune {
namespace {

// The scheduler for tune::PopulationBasedTraining, which documents its behaviour.
// Source: Jaderberg et al. 2017; Ray Tune's PopulationBasedTraining; docs/from-ray-tune.md lists the differences.
class PbtScheduler final : public Scheduler {
 public:
  PbtScheduler(PopulationBasedTraining settings, std::uint64_t seed);

  bool needs_whole_population() const override { return true; }
  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Decision on_trial_end(const TrialView& trial, const Population& population) override;
  Decision on_deadline(std::int64_t number, const Population& population) override;
  Decision on_controller_start(const Population& population) override;
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  // The state of a trial since its last comparison.
  struct Member {
    std::optional<double> last_score = {};  // larger is better
    double last_perturbation_time = 0;
    double last_train_time = 0;
    std::int64_t last_iteration = 0;
    std::uint64_t donors_drawn = 0;    // random numbers used to choose donors
    std::uint64_t explores_drawn = 0;  // and to explore
  };
  struct State {
    std::vector<Member> members = {};  // by the trial's index
    double next_sync = 0;              // synchronous: all live trials wait here
    std::int64_t round = 0;            // barriers passed
    std::int64_t exploits = 0;
  };
  enum class Rank : std::uint8_t { middle, lower, upper };
  struct Quantiles {
    std::vector<TrialIndex> lower;  // worst first
    std::vector<TrialIndex> upper;  // best last
    std::vector<Rank> ranks;        // of all members
  };

  bool at_interval(const Member& member, double time) const;
  bool never_saves(const TrialView& trial, const Population& population) const;
  bool may_become_donor(TrialIndex trial, const Population& population) const;
  // Synchronous: returns the trials that wait at the barrier.
  std::vector<TrialIndex> arrived(const Population& population) const;
  double furthest(const std::vector<TrialIndex>& members) const;
  bool round_is_complete(const Population& population, std::optional<TrialIndex> reporter) const;
  void perturb_all(double time, const std::vector<TrialIndex>& members, const Population& population,
                   Decision& decision);
  double sync_after(double time) const;
  template <class Trials>
  Quantiles quantiles(const Trials& trials) const;
  void exploit(TrialIndex target, const std::vector<TrialIndex>& upper, const Population& population,
               Decision& decision);

  PopulationBasedTraining settings_;
  std::uint64_t seed_;
  State state_;
};

std::string missing(const std::string& what, const std::string& key, const Metrics& result) {
  std::string names;
  for (const auto& [name, value] : result) names += (names.empty() ? "" : ", ") + name;
  return fmt::format(
      "the result has no number \"{}\", which PopulationBasedTraining needs as its {}; it has: {}. Report it with "
      "every "
      "result, or set require_attrs = false to pass over results without it",
      key, what, names);
}

std::string no_checkpoint(double interval, const std::string& time_attr) {
  return fmt::format(
      "it has come to its first interval (every {:g} of {}) without having reported a checkpoint, and "
      "PopulationBasedTraining continues trials from checkpoints: report one with tune::report(metrics, writer) and "
      "continue from tune::get_checkpoint(); or set a longer perturbation_interval or a burn_in_period, if the first "
      "checkpoint comes later",
      interval, time_attr);
}

std::string describe(const std::vector<Perturbation>& perturbations) {
  if (perturbations.empty()) return " No hyperparameters mutated.";
  std::string text;
  for (const Perturbation& made : perturbations) {
    text += fmt::format("\n  {} : {} --- ({}) --> {}", made.key, to_json(made.old_value), made.operation,
                        to_json(made.new_value));
  }
  return text;
}

// Describes the latest checkpoint of a trial, which may belong to another trial.
std::string describe(const CheckpointView& checkpoint, const TrialView& trial) {
  const std::string owner =
      checkpoint.owner == trial.index() ? "" : fmt::format("trial {}'s ", trial_id(checkpoint.owner));
  return fmt::format("{}{} of iteration {}", owner, checkpoint.name, training_iteration(checkpoint.metrics));
}

PbtScheduler::PbtScheduler(PopulationBasedTraining settings, std::uint64_t seed)
    : settings_(std::move(settings)),
      seed_(seed),
      state_{.next_sync = std::max(settings_.perturbation_interval, settings_.burn_in_period)} {}

void PbtScheduler::on_trial_add(const TrialView& trial) {
  if (trial.index() == state_.members.size()) {
    state_.members.emplace_back();
    return;
  }
  if (trial.num_results() > 0) return;
  // The trial begins anew, but its random numbers go on, so that it does not draw the same values again.
  Member& member = state_.members.at(trial.index());
  member.last_score.reset();
  member.last_perturbation_time = member.last_train_time = 0;
  member.last_iteration = 0;
}

Decision PbtScheduler::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  std::optional<double> time = result.number(settings_.time_attr);
  if (time && !std::isfinite(*time)) time.reset();
  const std::optional<double> metric = result.number(settings_.metric.name);
  Decision decision;
  if (!time || !metric) {
    if (!settings_.require_attrs) return decision;
    decision.kind = Decision::Kind::fail;
    decision.reason =
        !time ? missing("time_attr", settings_.time_attr, result) : missing("metric", settings_.metric.name, result);
    return decision;
  }

  Member& member = state_.members.at(trial.index());
  if (!at_interval(member, *time)) return decision;
  if (never_saves(trial, population)) {
    decision.kind = Decision::Kind::fail;
    decision.reason = no_checkpoint(settings_.perturbation_interval, settings_.time_attr);
    return decision;
  }
  member.last_score = settings_.mode == Mode::min ? -*metric : *metric;
  if (population.can_save(trial.index()) && may_become_donor(trial.index(), population)) {
    decision.kind = Decision::Kind::save;
    return decision;
  }
  member.last_train_time = *time;
  member.last_iteration = training_iteration(result);

  if (settings_.synch) {
    decision.kind = Decision::Kind::pause;
    const std::set<TrialIndex>& live = population.live_trials();
    if (round_is_complete(population, trial.index())) {
      perturb_all(*time, {live.begin(), live.end()}, population, decision);
    } else if (settings_.synch_deadline > 0 && arrived(population) == std::vector{trial.index()}) {
      decision.deadline = Deadline{state_.round, settings_.synch_deadline};
    }
    return decision;
  }
  member.last_perturbation_time = *time;
  if (population.anyone_waits()) decision.kind = Decision::Kind::pause;
  const Quantiles parts = quantiles(population.live_trials());
  if (parts.ranks[trial.index()] == Rank::lower) exploit(trial.index(), parts.upper, population, decision);
  return decision;
}

Decision PbtScheduler::on_trial_end(const TrialView&, const Population& population) {
  Decision decision;
  const std::set<TrialIndex>& live = population.live_trials();
  if (settings_.synch && !live.empty() && round_is_complete(population, std::nullopt)) {
    const std::vector<TrialIndex> members(live.begin(), live.end());
    perturb_all(furthest(members), members, population, decision);
  }
  return decision;
}

Decision PbtScheduler::on_deadline(std::int64_t number, const Population& population) {
  Decision decision;
  const std::vector<TrialIndex> waiting = arrived(population);
  if (number != state_.round || waiting.empty()) return decision;
  decision.messages.push_back(
      fmt::format("[PopulationBasedTraining] {} of {} trials have not reached {} {:g} within {:g} s; the others go on "
                  "without them",
                  population.live_trials().size() - waiting.size(), population.live_trials().size(),
                  settings_.time_attr, state_.next_sync, settings_.synch_deadline));
  perturb_all(furthest(waiting), waiting, population, decision);
  return decision;
}

Decision PbtScheduler::on_controller_start(const Population& population) {
  Decision decision;
  const bool waits = settings_.synch && settings_.synch_deadline > 0 && !arrived(population).empty();
  if (waits) decision.deadline = Deadline{state_.round, settings_.synch_deadline};
  return decision;
}

bool PbtScheduler::at_interval(const Member& member, double time) const {
  return time >= settings_.burn_in_period && time - member.last_perturbation_time >= settings_.perturbation_interval;
}

std::vector<TrialIndex> PbtScheduler::arrived(const Population& population) const {
  std::vector<TrialIndex> found;
  for (const TrialIndex live : population.live_trials()) {
    if (state_.members.at(live).last_train_time >= state_.next_sync) found.push_back(live);
  }
  return found;
}

double PbtScheduler::furthest(const std::vector<TrialIndex>& members) const {
  double time = 0;
  for (const TrialIndex member : members) time = std::max(time, state_.members.at(member).last_train_time);
  return time;
}

// Returns true if no trial could ever exploit it: such a population would train to its end with every exploit skipped.
bool PbtScheduler::never_saves(const TrialView& trial, const Population& population) const {
  const bool exploits_matter = settings_.quantile_fraction > 0 && population.live_trials().size() > 1;
  return exploits_matter && !trial.checkpoint() && !population.can_save(trial.index());
}

// Returns true if others may continue from the trial before its next interval. A trial in the middle becomes one of the
// best as soon as others report worse scores; with synch all are compared when the last one has arrived.
bool PbtScheduler::may_become_donor(TrialIndex trial, const Population& population) const {
  return settings_.synch || quantiles(population.live_trials()).ranks[trial] != Rank::lower;
}

// Counts the reporter as arrived: it may be beyond its interval and yet before the barrier.
bool PbtScheduler::round_is_complete(const Population& population, std::optional<TrialIndex> reporter) const {
  return std::ranges::all_of(population.live_trials(), [&](TrialIndex live) {
    return live == reporter || state_.members.at(live).last_train_time >= state_.next_sync;
  });
}

void PbtScheduler::perturb_all(double time, const std::vector<TrialIndex>& members, const Population& population,
                               Decision& decision) {
  const Quantiles parts = quantiles(members);
  for (const TrialIndex member : members) state_.members.at(member).last_perturbation_time = time;
  for (const TrialIndex target : parts.lower) exploit(target, parts.upper, population, decision);
  ++state_.round;
  double beyond = state_.next_sync;
  for (const Member& member : state_.members) beyond = std::max(beyond, member.last_train_time);
  state_.next_sync = sync_after(beyond);
}

// Returns the next barrier: whole intervals later and beyond `time`, also after rounding, because otherwise no trial
// would ever be chosen to run again.
double PbtScheduler::sync_after(double time) const {
  const double interval = settings_.perturbation_interval;
  const double passed = std::floor((time - state_.next_sync) / interval);
  for (const double more : {-1.0, 0.0, 1.0, 2.0}) {
    const double barrier = state_.next_sync + std::max(passed + more, 1.0) * interval;
    if (barrier > time) return barrier;
  }
  return std::nextafter(time, std::numeric_limits<double>::infinity());  // rounding loses an interval of a time so late
}

template <class Trials>
PbtScheduler::Quantiles PbtScheduler::quantiles(const Trials& trials) const {
  Quantiles parts{.lower = {}, .upper = {}, .ranks = std::vector<Rank>(state_.members.size(), Rank::middle)};
  std::vector<std::pair<double, TrialIndex>> ranked;
  for (const TrialIndex index : trials) {
    const std::optional<double>& score = state_.members[index].last_score;
    if (score && !std::isnan(*score)) ranked.emplace_back(*score, index);
  }
  if (ranked.size() < 2) return parts;
  std::ranges::sort(ranked);
  const auto count = static_cast<double>(ranked.size());
  auto size = static_cast<std::size_t>(std::ceil(count * settings_.quantile_fraction));
  if (static_cast<double>(size) > count / 2) size = ranked.size() / 2;
  const auto take = [&](std::span<const std::pair<double, TrialIndex>> some, std::vector<TrialIndex>& part, Rank rank) {
    for (const auto& [score, index] : some) {
      part.push_back(index);
      parts.ranks[index] = rank;
    }
  };
  take(std::span(ranked).first(size), parts.lower, Rank::lower);
  take(std::span(ranked).last(size), parts.upper, Rank::upper);
  return parts;
}

void PbtScheduler::exploit(TrialIndex target, const std::vector<TrialIndex>& upper, const Population& population,
                           Decision& decision) {
  Member& member = state_.members.at(target);
  base::RandomStream donors(seed_, target, base::Purpose::exploit, member.donors_drawn);
  const TrialIndex donor = upper[donors.below(upper.size())];
  member.donors_drawn = donors.index();
  const Member& giving = state_.members.at(donor);
  const TrialView from = population.trial(donor);
  const TrialView into = population.trial(target);
  // Without this, trials with equal scores would exchange each other's checkpoints for ever.
  if (!(*giving.last_score > *member.last_score)) return;
  if (!from.checkpoint()) {
    decision.messages.push_back(fmt::format(
        "[PopulationBasedTraining] trial {} has no checkpoint yet. Skip exploit for trial {}", from.id(), into.id()));
    return;
  }
  Explored explored;
  base::RandomStream stream(seed_, target, base::Purpose::explore, member.explores_drawn);
  try {
    explored = explore(from.config(), settings_, stream);
    member.explores_drawn = stream.index();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // from a user function
    member.explores_drawn = stream.index();
    decision.messages.push_back(
        fmt::format("[PopulationBasedTraining] cannot explore the config of trial {}: {}. Skip exploit for trial {}",
                    from.id(), error.what(), into.id()));
    return;
  }
  Exploit exploit{.target = target,
                  .donor = donor,
                  .target_iteration = member.last_iteration,
                  .config = std::move(explored.config),
                  .operations = operations_of(explored.perturbations)};
  decision.messages.push_back(fmt::format(
      "[PopulationBasedTraining] [Exploit] Cloning trial {} (score = {:.6f}) into trial {} (score = {:.6f}), from {}",
      from.id(), *giving.last_score, into.id(), *member.last_score, describe(*from.checkpoint(), from)));
  decision.messages.push_back(
      fmt::format("[PopulationBasedTraining] [Explore] Perturbed the hyperparameter config of trial {}:{}", into.id(),
                  describe(explored.perturbations)));
  member.last_perturbation_time = giving.last_perturbation_time;
  member.last_train_time = giving.last_train_time;
  ++state_.exploits;
  decision.exploits.push_back(std::move(exploit));
}

std::optional<TrialIndex> PbtScheduler::choose(const Candidates& candidates, const Population&) {
  std::optional<TrialIndex> least;
  for (const TrialIndex candidate : candidates) {
    const double time = state_.members.at(candidate).last_train_time;
    if (settings_.synch && time >= state_.next_sync) continue;
    if (!least || time < state_.members.at(*least).last_train_time) least = candidate;
  }
  return least;
}

Value PbtScheduler::save() const { return cadre::to_stored(state_); }

void PbtScheduler::load(const Value& saved) {
  auto state = cadre::from_value<State>(saved);
  if (state.members.size() != state_.members.size())
    throw InvalidArgument(
        fmt::format("the state has {} members of {} trials", state.members.size(), state_.members.size()));
  state_ = std::move(state);
}

std::string PbtScheduler::debug_string() const {
  return fmt::format("PopulationBasedTraining: {} exploits", state_.exploits);
}

}  // namespace

std::unique_ptr<Scheduler> PopulationBasedTraining::make(const SchedulerSetting& setting) const {
  return std::make_unique<PbtScheduler>(*this, setting.seed);
}

void PopulationBasedTraining::check(const TunerOptions& options, Faults& faults) const {
  faults.unless(!time_attr.empty(), "time_attr",
                "say what perturbation_interval counts, such as \"training_iteration\" or \"time_total_s\"");
  faults.unless(std::isfinite(perturbation_interval) && perturbation_interval > 0, "perturbation_interval",
                fmt::format("it is {}; it must be above 0, in units of time_attr", perturbation_interval));
  faults.unless(std::isfinite(burn_in_period) && burn_in_period >= 0, "burn_in_period",
                fmt::format("it is {}; it must be 0 or more", burn_in_period));
  faults.unless(quantile_fraction >= 0 && quantile_fraction <= 0.5, "quantile_fraction",
                fmt::format("it is {}; it must be from 0 to 0.5", quantile_fraction));
  faults.unless(resample_probability >= 0 && resample_probability <= 1, "resample_probability",
                fmt::format("it is {}; it must be from 0 to 1", resample_probability));
  const auto& [first, second] = perturbation_factors;
  faults.unless(std::isfinite(first) && std::isfinite(second) && first > 0 && second > 0, "perturbation_factors",
                fmt::format("they are {} and {}; both must be above 0", first, second));
  faults.unless(std::isfinite(synch_deadline) && synch_deadline >= 0, "synch_deadline",
                fmt::format("it is {}; it must be 0 (none) or more seconds", synch_deadline));
  faults.unless(synch || synch_deadline == 0, "synch_deadline", "it needs synch = true");
  const std::string& custom = custom_explore_fn.function;
  faults.unless(!hyperparam_mutations.empty() || !custom.empty(), "hyperparam_mutations",
                "name at least one key to mutate, or set custom_explore_fn");
  check_mutations(hyperparam_mutations, options.param_space, faults);
  if (!custom.empty()) check_registered(explore_functions(), custom, "explore_function", "custom_explore_fn", faults);
}

void PopulationBasedTraining::complete(const TunerOptions&, std::vector<std::string>& notes) {
  hyperparam_mutations = with_sorted_bounds(hyperparam_mutations, "hyperparam_mutations ", notes);
}

Scheduler::Traits PopulationBasedTraining::traits() const {
  return {.exploits = true, .logs_exploits = log_config, .mutated = mutated_keys(hyperparam_mutations)};
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTraining>;

}  // namespace cadre::tune
