#include "tune/schedulers/pbt_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "base/host_object.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "tune/experiment_directory.h"
#include "tune/result_keys.h"
#include "tune/trial.h"

namespace cadre::tune {
namespace {

// The scheduler for tune::PopulationBasedTraining and its variants, which document its behaviour.
// Source: Jaderberg et al. 2017; Ray Tune's PopulationBasedTraining; docs/from-ray-tune.md lists the differences.
class PbtScheduler final : public Scheduler {
 public:
  PbtScheduler(PbtSettings settings, std::uint64_t seed, std::unique_ptr<const Selection> selection,
               std::unique_ptr<Explorer> explorer);

  bool needs_whole_population() const override { return true; }
  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Decision on_trial_end(const TrialView& trial, const Population& population) override;
  Decision on_deadline(std::int64_t number, const Population& population) override;
  Decision on_controller_start(const Population& population) override;
  bool may_run(TrialIndex trial) const override;
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
    std::uint64_t explores_drawn = 0;  // random numbers used to explore configs
    std::int64_t comparisons = 0;      // asynchronous: since its beginning
  };
  struct State {
    std::vector<Member> members = {};  // by the trial's index
    double next_sync = 0;              // synchronous: all live trials wait here
    std::int64_t round = 0;            // barriers passed
    std::int64_t exploits = 0;
    Value explorer = {};
  };

  std::optional<double> time_of(const Metrics& result) const;
  // Larger is better.
  std::optional<double> score_of(const Metrics& result) const;
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
  std::vector<Ranked> ranked(const Trials& trials) const;
  template <class Trials>
  void replace(const Trials& compared, std::span<const TrialIndex> may_be_replaced, const Population& population,
               Decision& decision);
  void add_exploit(const Replacement& replacement, const Population& population, Decision& decision);
  Explored config_for(const Replacement& replacement, const Population& population);
  std::size_t draw_donor(TrialIndex target, std::size_t n);

  PbtSettings settings_;
  std::uint64_t seed_;
  std::unique_ptr<const Selection> selection_;
  std::unique_ptr<Explorer> explorer_;
  State state_;
};

std::string missing(const std::string& scheduler, const std::string& what, const std::string& key,
                    const Metrics& result) {
  std::string names;
  for (const auto& [name, value] : result) names += (names.empty() ? "" : ", ") + name;
  return fmt::format(
      "the result has no number \"{}\", which {} needs as its {}; it has: {}. Report it with every result, or set "
      "require_attrs = false to pass over results without it",
      key, scheduler, what, names);
}

std::string no_checkpoint(const PbtSettings& settings) {
  return fmt::format(
      "it has come to its first interval (every {:g} of {}) without having reported a checkpoint, and "
      "{} continues trials from checkpoints: report one with tune::report(metrics, writer) and "
      "continue from tune::get_checkpoint(); or set a longer perturbation_interval or a burn_in_period, if the first "
      "checkpoint comes later",
      settings.perturbation_interval, settings.time_attr, settings.name);
}

std::string describe(const std::vector<Perturbation>& perturbations) {
  if (perturbations.empty()) return " No hyperparameters mutated.";
  std::string text;
  for (const Perturbation& made : perturbations) {
    text += fmt::format("\n  {} : {} --- ({}) --> {}", made.key, to_json(base::without_host_objects(made.old_value)),
                        made.operation, to_json(base::without_host_objects(made.new_value)));
  }
  return text;
}

// Describes the latest checkpoint of a trial, which may belong to another trial.
std::string describe(const CheckpointView& checkpoint, const TrialView& trial) {
  const std::string owner =
      checkpoint.owner == trial.index() ? "" : fmt::format("trial {}'s ", trial_id(checkpoint.owner));
  return fmt::format("{}{} of iteration {}", owner, checkpoint.name, training_iteration(checkpoint.metrics));
}

PbtScheduler::PbtScheduler(PbtSettings settings, std::uint64_t seed, std::unique_ptr<const Selection> selection,
                           std::unique_ptr<Explorer> explorer)
    : settings_(std::move(settings)),
      seed_(seed),
      selection_(std::move(selection)),
      explorer_(std::move(explorer)),
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
  member.last_iteration = member.comparisons = 0;
  explorer_->on_discontinued(trial.index());
}

std::optional<double> PbtScheduler::time_of(const Metrics& result) const {
  const std::optional<double> time = result.number(settings_.time_attr);
  return time && std::isfinite(*time) ? time : std::nullopt;
}

std::optional<double> PbtScheduler::score_of(const Metrics& result) const {
  const std::optional<double> metric = result.number(settings_.metric);
  if (!metric) return metric;
  return settings_.mode == Mode::min ? -*metric : *metric;
}

Decision PbtScheduler::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  const std::optional<double> time = time_of(result);
  const std::optional<double> score = score_of(result);
  Decision decision;
  if (!time || !score) {
    if (!settings_.require_attrs) return decision;
    decision.kind = Decision::Kind::fail;
    decision.reason = !time ? missing(settings_.name, "time_attr", settings_.time_attr, result)
                            : missing(settings_.name, "metric", settings_.metric, result);
    return decision;
  }

  Member& member = state_.members.at(trial.index());
  if (!at_interval(member, *time)) return decision;
  if (never_saves(trial, population)) {
    decision.kind = Decision::Kind::fail;
    decision.reason = no_checkpoint(settings_);
    return decision;
  }
  member.last_score = *score;
  if (population.can_save(trial.index()) && may_become_donor(trial.index(), population)) {
    decision.kind = Decision::Kind::save;
    return decision;
  }
  member.last_train_time = *time;
  member.last_iteration = training_iteration(result);
  explorer_->on_interval(trial, *time, *score);

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
  const TrialIndex index = trial.index();
  replace(population.live_trials(), {&index, 1}, population, decision);
  ++member.comparisons;
  return decision;
}

Decision PbtScheduler::on_trial_end(const TrialView& trial, const Population& population) {
  Decision decision;
  explorer_->on_discontinued(trial.index());
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
      fmt::format("[{}] {} of {} trials have not reached {} {:g} within {:g} s; the others go on without them",
                  settings_.name, population.live_trials().size() - waiting.size(), population.live_trials().size(),
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
  return settings_.synch || selection_->may_become_donor(trial, ranked(population.live_trials()));
}

// Counts the reporter as arrived: it may be beyond its interval and yet before the barrier.
bool PbtScheduler::round_is_complete(const Population& population, std::optional<TrialIndex> reporter) const {
  return std::ranges::all_of(population.live_trials(), [&](TrialIndex live) {
    return live == reporter || state_.members.at(live).last_train_time >= state_.next_sync;
  });
}

void PbtScheduler::perturb_all(double time, const std::vector<TrialIndex>& members, const Population& population,
                               Decision& decision) {
  for (const TrialIndex member : members) state_.members.at(member).last_perturbation_time = time;
  replace(members, members, population, decision);
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
std::vector<Ranked> PbtScheduler::ranked(const Trials& trials) const {
  std::vector<Ranked> ranked;
  for (const TrialIndex index : trials) {
    const std::optional<double>& score = state_.members[index].last_score;
    if (score && !std::isnan(*score)) ranked.emplace_back(*score, index);
  }
  std::ranges::sort(ranked);
  return ranked;
}

template <class Trials>
void PbtScheduler::replace(const Trials& compared, std::span<const TrialIndex> may_be_replaced,
                           const Population& population, Decision& decision) {
  const std::vector<Ranked> scores = ranked(compared);
  const Comparison comparison{
      .ranked = scores,
      .may_be_replaced = may_be_replaced,
      .comparisons_of =
          [&](TrialIndex trial) { return settings_.synch ? state_.round : state_.members.at(trial).comparisons; },
      .draw = [&](TrialIndex target, std::size_t n) { return draw_donor(target, n); }};
  for (const Replacement& replacement : selection_->replacements(comparison))
    add_exploit(replacement, population, decision);
}

std::size_t PbtScheduler::draw_donor(TrialIndex target, std::size_t n) {
  Member& member = state_.members.at(target);
  base::RandomStream stream(seed_, target, base::Purpose::exploit, member.donors_drawn);
  const std::uint64_t drawn = stream.below(n);
  member.donors_drawn = stream.index();
  return drawn;
}

void PbtScheduler::add_exploit(const Replacement& replacement, const Population& population, Decision& decision) {
  const auto& [target, donor, config_of] = replacement;
  Member& member = state_.members.at(target);
  const Member& giving = state_.members.at(donor);
  const TrialView from = population.trial(donor);
  const TrialView into = population.trial(target);
  // Without this, trials with equal scores would exchange each other's checkpoints for ever.
  if (!(*giving.last_score > *member.last_score)) return;
  if (!from.checkpoint()) {
    decision.messages.push_back(fmt::format("[{}] trial {} has no checkpoint yet. Skip exploit for trial {}",
                                            settings_.name, from.id(), into.id()));
    return;
  }
  Explored explored;
  try {
    explored = config_for(replacement, population);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // from a user function
    decision.messages.push_back(fmt::format("[{}] cannot explore the config of trial {}: {}. Skip exploit for trial {}",
                                            settings_.name, from.id(), error.what(), into.id()));
    return;
  }
  Exploit exploit{.target = target,
                  .donor = donor,
                  .target_iteration = member.last_iteration,
                  .config = std::move(explored.config),
                  .operations = operations_of(explored.perturbations)};
  decision.messages.push_back(fmt::format(
      "[{}] [Exploit] Cloning trial {} (score = {:.6f}) into trial {} (score = {:.6f}), from {}", settings_.name,
      from.id(), *giving.last_score, into.id(), *member.last_score, describe(*from.checkpoint(), from)));
  decision.messages.push_back(
      config_of ? fmt::format("[{}] [Migrate] Trial {} takes the config of trial {} as it is", settings_.name,
                              into.id(), population.trial(*config_of).id())
                : fmt::format("[{}] [Explore] Perturbed the hyperparameter config of trial {}{}:{}", settings_.name,
                              into.id(), explored.basis, describe(explored.perturbations)));
  member.last_perturbation_time = giving.last_perturbation_time;
  member.last_train_time = giving.last_train_time;
  ++state_.exploits;
  decision.exploits.push_back(std::move(exploit));
}

// Returns the target's new config. Passes on exceptions of user functions.
Explored PbtScheduler::config_for(const Replacement& replacement, const Population& population) {
  const TrialView donor = population.trial(replacement.donor);
  if (replacement.config_of) {
    const TrialView giver = population.trial(*replacement.config_of);
    return {.config = giver.config(),
            .perturbations = changes(donor.config(), giver.config(), "config of trial " + giver.id())};
  }
  Member& member = state_.members.at(replacement.target);
  const Member& giving = state_.members.at(replacement.donor);
  const Metrics& metrics = donor.checkpoint()->metrics;
  const std::optional<double> time = time_of(metrics);
  const std::optional<double> score = score_of(metrics);
  const bool known = time && score && std::isfinite(*score);
  const Origin origin{.target = replacement.target,
                      .config = donor.config(),
                      .time = known ? *time : giving.last_train_time,
                      .score = known ? *score : *giving.last_score};
  base::RandomStream stream(seed_, replacement.target, base::Purpose::explore, member.explores_drawn);
  try {
    Explored explored = explorer_->explore(origin, stream);
    member.explores_drawn = stream.index();
    return explored;
  } catch (...) {
    member.explores_drawn = stream.index();
    throw;
  }
}

bool PbtScheduler::may_run(TrialIndex trial) const {
  return !settings_.synch || state_.members.at(trial).last_train_time < state_.next_sync;
}

std::optional<TrialIndex> PbtScheduler::choose(const Candidates& candidates, const Population&) {
  std::optional<TrialIndex> least;
  for (const TrialIndex candidate : candidates) {
    if (!may_run(candidate)) continue;
    const double time = state_.members.at(candidate).last_train_time;
    if (!least || time < state_.members.at(*least).last_train_time) least = candidate;
  }
  return least;
}

Value PbtScheduler::save() const {
  State state = state_;
  state.explorer = explorer_->save();
  return cadre::to_stored(state);
}

void PbtScheduler::load(const Value& saved) {
  auto state = cadre::from_value<State>(saved);
  if (state.members.size() != state_.members.size())
    throw InvalidArgument(
        fmt::format("the state has {} members of {} trials", state.members.size(), state_.members.size()));
  explorer_->load(std::exchange(state.explorer, {}));
  state_ = std::move(state);
}

std::string PbtScheduler::debug_string() const {
  return fmt::format("{}: {} exploits", settings_.name, state_.exploits);
}

class MutationExplorer final : public Explorer {
 public:
  explicit MutationExplorer(PopulationBasedTraining options) : options_(std::move(options)) {}

  Explored explore(const Origin& origin, base::RandomStream& random) override {
    return tune::explore(origin.config, options_, random);
  }

 private:
  PopulationBasedTraining options_;
};

}  // namespace

void check_pbt_settings(const PbtSettings& settings, Faults& faults) {
  faults.unless(!settings.time_attr.empty(), "time_attr",
                "say what perturbation_interval counts, such as \"training_iteration\" or \"time_total_s\"");
  faults.unless(std::isfinite(settings.perturbation_interval) && settings.perturbation_interval > 0,
                "perturbation_interval",
                fmt::format("it is {}; it must be above 0, in units of time_attr", settings.perturbation_interval));
  faults.unless(std::isfinite(settings.burn_in_period) && settings.burn_in_period >= 0, "burn_in_period",
                fmt::format("it is {}; it must be 0 or more", settings.burn_in_period));
  faults.unless(settings.quantile_fraction >= 0 && settings.quantile_fraction <= 0.5, "quantile_fraction",
                fmt::format("it is {}; it must be from 0 to 0.5", settings.quantile_fraction));
  faults.unless(std::isfinite(settings.synch_deadline) && settings.synch_deadline >= 0, "synch_deadline",
                fmt::format("it is {}; it must be 0 (none) or more seconds", settings.synch_deadline));
  faults.unless(settings.synch || settings.synch_deadline == 0, "synch_deadline", "it needs synch = true");
}

std::size_t quantile_size(std::size_t count, double fraction) {
  const auto size = static_cast<std::size_t>(std::ceil(static_cast<double>(count) * fraction));
  return std::min(size, count / 2);
}

std::vector<Replacement> QuantileSelection::replacements(const Comparison& comparison) const {
  const std::vector<Ranked>& ranked = comparison.ranked;
  const std::size_t size = quantile_size(ranked.size(), fraction_);
  const auto upper = std::span(ranked).last(size);
  std::vector<Replacement> replacements;
  for (const auto& [score, target] : std::span(ranked).first(size)) {
    if (std::ranges::find(comparison.may_be_replaced, target) == comparison.may_be_replaced.end()) continue;
    replacements.push_back({.target = target, .donor = upper[comparison.draw(target, size)].second});
  }
  return replacements;
}

bool QuantileSelection::may_become_donor(TrialIndex trial, const std::vector<Ranked>& ranked) const {
  const auto lower = std::span(ranked).first(quantile_size(ranked.size(), fraction_));
  return std::ranges::find(lower, trial, &Ranked::second) == lower.end();
}

void Explorer::on_interval(const TrialView&, double, double) {}

void Explorer::on_discontinued(TrialIndex) {}

void Explorer::load(const Value& state) {
  if (!state.is_null())
    throw InvalidArgument("the state has an explorer's state, and the explorer of this scheduler has none");
}

std::unique_ptr<Explorer> mutation_explorer(PopulationBasedTraining options) {
  return std::make_unique<MutationExplorer>(std::move(options));
}

std::unique_ptr<Scheduler> make_pbt_scheduler(PbtSettings settings, std::uint64_t seed,
                                              std::unique_ptr<const Selection> selection,
                                              std::unique_ptr<Explorer> explorer) {
  return std::make_unique<PbtScheduler>(std::move(settings), seed, std::move(selection), std::move(explorer));
}

}  // namespace cadre::tune
