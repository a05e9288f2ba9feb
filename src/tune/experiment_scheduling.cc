// Makes trials, lets the scheduler choose among those that could run, and starts them where there is room.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "cadre/error.h"
#include "tune/experiment.h"
#include "tune/options/check_search_space.h"
#include "tune/result_keys.h"
#include "tune/trial_places.h"

namespace cadre::tune {

void Experiment::begin_waiting(Trial& trial, TrialStatus status) {
  trial.status = status;
  end_waiting(trial);
  waiting_.insert(trial.index);
  if (status == TrialStatus::pending) pending_.insert(trial.index);
}

void Experiment::end_waiting(Trial& trial) {
  waiting_.erase(trial.index);
  pending_.erase(trial.index);
  cut_off_.erase(trial.index);
  trial.was_cut_off = false;
}

void Experiment::set_cut_off(Trial& trial) {
  trial.was_cut_off = true;
  cut_off_.insert(trial.index);
}

// The waiting trials that could run now.
class Experiment::Runnable final : public Candidates {
 public:
  explicit Runnable(Experiment& experiment)
      : experiment_(experiment),
        alike_(!experiment.needs_.by_config()),
        anywhere_(alike_ && tune::has_room(experiment.cluster_, experiment.needs_.usual())),
        may_move_(experiment.may_move()) {}

  bool contains(TrialIndex index) const override { return experiment_.waiting_.contains(index) && can_run(index); }
  std::optional<TrialIndex> next(TrialIndex from) const override {
    const auto& waiting = experiment_.waiting_;
    const auto found = std::find_if(waiting.lower_bound(from), waiting.end(), [&](TrialIndex i) { return can_run(i); });
    return found == waiting.end() ? std::nullopt : std::optional(*found);
  }

 private:
  bool can_run(TrialIndex index) const {
    const Trial& trial = experiment_.trials_[index];
    if ((trial.worker != WorkerState::none && trial.worker != WorkerState::parked) || trial.backs_off) return false;
    const std::optional<resources::Only> own = experiment_.own_place(trial);
    if (!own && alike_) return anywhere_;
    if (experiment_.has_room(trial, trial.needs)) return true;
    return own && may_move_ && (experiment_.is_saved(trial) || experiment_.can_save(trial)) &&
           tune::has_room(experiment_.cluster_, trial.needs);
  }

  Experiment& experiment_;
  bool alike_;
  bool anywhere_;  // there is room for a trial that needs no certain node or GPUs
  bool may_move_;
};

void Experiment::schedule() {
  if (state_.interrupted || !population_is_made()) return;
  const std::int64_t limit = options_.tune_config.max_concurrent_trials;
  while ((limit == 0 || std::ssize(holders_) < limit) && (!waiting_.empty() || trials_to_come() > 0)) {
    const bool free = needs_.by_config() || tune::has_room(cluster_, needs_.usual());
    const bool has_own = needs_.usual().total.gpus > 0 || may_be_parted(cluster_, needs_.usual());
    if (!free && (!has_own || parked_.empty())) return;
    const bool made = !free || !should_make_trial() || make_trial();
    const Runnable offered(*this);
    const std::optional<TrialIndex> next = next_of(offered);
    if (!next) {
      if (!free || !made || scheduler_->needs_whole_population()) return;
      if (should_make_trial()) continue;  // the trial just made has failed at once
      const auto is_offered = [&](TrialIndex index) { return offered.contains(index); };
      if (trials_to_come() == 0 || std::ranges::none_of(pending_, is_offered)) return;
      if (!make_trial()) return;  // the scheduler wants none of those that wait to begin
      continue;
    }
    if (*next >= trials_.size() || !offered.contains(*next))
      throw std::logic_error(fmt::format("the scheduler lets trial {} run, which was not offered to it", *next));
    Trial& trial = trials_[*next];
    if (cluster_.may_change() && !has_room(trial, trial.needs)) {
      is_saved(trial) ? restart(trial) : ask_to_save(trial, AfterSave::restart);
      continue;
    }
    acquire_resources(trial);
    said_why_trials_wait_ = false;
    end_waiting(trial);
    trial.status = TrialStatus::running;
    if (trial.worker == WorkerState::none) {
      launch(trial);
    } else if (trial.takes_over) {
      take_over(trial);
    } else {
      record(DecisionKind::resume, trial);
      resume(trial);
    }
    actions_->push_back(state_of(trial));
  }
}

// Returns true if a parked trial may be restarted where there is room, because there is none where it is parked. One at
// a time: until its worker has ended, its place looks free.
bool Experiment::may_move() const {
  if (!cluster_.may_change() || parked_.empty()) return false;
  return std::ranges::all_of(waiting_, [this](TrialIndex index) {
    const WorkerState worker = trials_[index].worker;
    return worker == WorkerState::none || worker == WorkerState::parked;
  });
}

std::vector<engine::Demand> Experiment::demand() {
  std::vector<engine::Demand> demand;
  if (state_.interrupted) return demand;
  const std::int64_t limit = options_.tune_config.max_concurrent_trials;
  std::int64_t left = limit == 0 ? std::numeric_limits<std::int64_t>::max() : limit - std::ssize(holders_);
  const auto add_worker = [&](const Resources& worker, std::int64_t workers) {
    const auto same = std::ranges::find(demand, worker, &engine::Demand::worker);
    if (same == demand.end()) {
      demand.push_back({worker, workers});
    } else {
      same->workers += workers;
    }
  };
  const auto add = [&](const Needs& needs, std::int64_t trials) {
    trials = std::min(trials, left);
    if (trials <= 0) return;
    left -= trials;
    if (!may_be_parted(cluster_, needs)) return add_worker(needs.total, trials);
    for (const Resources& bundle : needs.bundles) add_worker(bundle, trials);
  };
  const bool is_usual_free = !needs_.by_config() && tune::has_room(cluster_, needs_.usual());
  for (const TrialIndex index : waiting_) {
    if (left <= 0) break;
    const Trial& trial = trials_[index];
    const bool is_ready = trial.worker == WorkerState::none || trial.worker == WorkerState::parked;
    const bool has_room = needs_.by_config() ? tune::has_room(cluster_, trial.needs) : is_usual_free;
    if (is_ready && !trial.backs_off && !has_room && scheduler_->may_run(index)) add(trial.needs, 1);
  }
  if (!needs_.by_config() && !is_usual_free && !searcher_.has_none()) add(needs_.usual(), trials_to_come());
  return demand;
}

// Says once that nothing runs because no node has what a trial needs: one that joins may have it.
void Experiment::say_why_trials_wait() {
  if (!cluster_.may_change() || said_why_trials_wait_ || state_.interrupted || !holders_.empty()) return;
  if (waiting_.empty() && trials_to_come() == 0) return;
  if (needs_.by_config() && waiting_.empty()) return;
  const std::string missing =
      shortage(cluster_, needs_.by_config() ? trials_[*waiting_.begin()].needs : needs_.usual());
  if (missing.empty()) return;
  said_why_trials_wait_ = true;
  actions_->push_back(Say{fmt::format("Trials wait until a node joins that has what one needs: {}", missing)});
}

// Returns the trial to run next; empty: none of those that could.
std::optional<TrialIndex> Experiment::next_of(const Runnable& offered) {
  const auto found = std::ranges::find_if(cut_off_, [&](TrialIndex index) { return offered.contains(index); });
  return found == cut_off_.end() ? scheduler_->choose(offered, *this) : *found;
}

bool Experiment::should_make_trial() const {
  return trials_to_come() > 0 &&
         std::ranges::none_of(pending_, [this](TrialIndex index) { return !trials_[index].backs_off; });
}

// Makes the trials that are to come, if the scheduler needs all of them before any begins. Returns false if it has to
// wait for that.
bool Experiment::population_is_made() {
  if (!scheduler_->needs_whole_population()) return true;
  while (trials_to_come() > 0 && make_trial()) {
  }
  return trials_to_come() == 0;
}

// Makes the next trial. Returns false if the searcher has no config for it now.
bool Experiment::make_trial() {
  const auto index = static_cast<TrialIndex>(trials_.size());
  if (!state_.queue.empty() && !searcher_.is_asked()) {
    variants_.insert(index, state_.queue.front());
    state_.queued.emplace(index, std::move(state_.queue.front()));
    state_.queue.erase(state_.queue.begin());
    make_trial(index, Config());
  } else if (recorded(index, "config") != nullptr) {  // by a searcher that was not asked in another thread
    const Value* values = recorded(index, "suggestion");
    make_trial(index, values == nullptr ? Config() : Config(*values));
  } else if (variants_.has_point(index)) {
    make_trial(index, Config());
  } else if (searcher_.is_asked() || searcher_.has_none()) {
    return false;
  } else if (options_.tune_config.searcher.held().traits().quick) {
    const std::optional<Config> suggestion = searcher_.get().suggest(index);
    if (!suggestion) searcher_.set_has_none(searcher_.get().is_finished());
    if (!accept(index, suggestion)) return false;
    if (recorded_ != nullptr) return false;  // a replay makes what was made, however many the options ask for
    make_trial(index, *suggestion);
  } else {
    searcher_.ask(index);
    actions_->push_back(AskSearcher{index});
    return false;
  }
  return true;
}

// Makes a trial whose config has these values, none if it has a point to evaluate.
void Experiment::make_trial(TrialIndex index, const Config& suggestion) {
  Variant variant = variant_of(index, suggestion);
  Trial& trial = add_trial(index, variant);
  std::string fault = variant.fault.empty() ? find_needs(trial) : variant.fault;
  Dict data{{"config", trial.config.dict()}};
  if (!fault.empty()) {
    trial.suggestion = suggestion;
    data.emplace_back("fault", fault);
    if (!suggestion.empty()) data.emplace_back("suggestion", suggestion.dict());
  }
  add_needs(trial, data);
  record(DecisionKind::make, trial, std::move(data));
  actions_->push_back(state_of(trial));  // so that the store has every trial that a decision names
  if (fault.empty()) fault = shortage_of(trial);
  if (!fault.empty()) fail(trial, {.cause = fault, .may_retry = false});
}

// Returns true if the searcher has a suggestion for the trial, after it has checked that.
bool Experiment::accept(TrialIndex trial, const std::optional<Config>& suggestion) {
  const std::string_view name = options_.tune_config.searcher.name();
  if (searcher_.is_finished()) return false;
  if (searcher_.has_none() && live_.empty())
    throw std::logic_error(fmt::format("the searcher {} waits for the end of a trial, and there is none", name));
  if (searcher_.has_none() && state_.workers == 0 && scheduler_->needs_whole_population())
    throw InvalidArgument(
        fmt::format("the searcher {} waits for the end of a trial, and under the scheduler {} none begins before all "
                    "{} are made: use TuneConfig::max_concurrent_trials to limit trials that run",
                    name, options_.tune_config.scheduler.name(), variants_.size()));
  if (!suggestion) return false;
  if (options_.tune_config.searcher.held().traits().any_values) return true;
  Faults faults;
  check_point(suggestion->dict(), options_.param_space, "value", faults);
  faults.throw_if_any(fmt::format("trial {}, as the searcher {} suggests it,", trial_id(trial), name));
  return true;
}

Variant Experiment::variant_of(TrialIndex trial, const Config& suggestion) const {
  const Value* config = recorded(trial, "config");
  if (config == nullptr) return variants_(trial, suggestion);
  const Value* fault = recorded(trial, "fault");
  return {.config = Config(*config),
          .sampled = variants_.sampled(trial, Config(*config)),
          .fault = fault == nullptr ? "" : fault->get<std::string>()};
}

// Adds a trial, which waits to begin.
Trial& Experiment::add_trial(TrialIndex index, Variant& variant) {
  Trial trial;
  trial.index = index;
  trial.id = trial_id(index);
  trial.tag = trial_tag(index, variant.sampled);
  trial.directory = trial_directory_name(index, variant.sampled);
  trial.sampled = std::move(variant.sampled);
  trial.config = std::move(variant.config);
  trials_.push_back(std::move(trial));
  live_.insert(index);
  begin_waiting(trials_.back(), TrialStatus::pending);
  searcher_.on_trial_add(index, trials_.back().config);
  scheduler_->on_trial_add(view_of(trials_.back()));
  return trials_.back();
}

// Returns the value of a recorded decision about the trial; nullptr if there is none, or nothing is replayed.
const Value* Experiment::recorded(TrialIndex trial, std::string_view key) const {
  if (recorded_ == nullptr) return nullptr;
  for (const RecordDecision& decision : std::ranges::equal_range(*recorded_, trial, {}, &RecordDecision::trial)) {
    if (const Value* value = find_entry(decision.data, key)) return value;
  }
  return nullptr;
}

// Returns why the trial's needs cannot be computed; empty if they can.
std::string Experiment::find_needs(Trial& trial) const {
  if (const Value* needs = recorded(trial.index, "needs")) {
    trial.needs = cadre::from_value<Needs>(*needs);
    return {};
  }
  try {
    trial.needs = needs_(trial.config);
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return fmt::format("what it needs cannot be found out: {}", error.what());
  }
}

// Adds the needs to a decision, if a function of the program has computed them.
void Experiment::add_needs(const Trial& trial, Dict& data) const {
  if (!needs_.by_config() || find_entry(data, "fault") != nullptr) return;
  const Value* const known = recorded(trial.index, "needs");  // an earlier version may have recorded less of them
  data.emplace_back("needs", known == nullptr ? cadre::to_stored(trial.needs) : *known);
}

// Updates the needs after the config has changed. Returns true if they are the same as before.
bool Experiment::update_needs(Trial& trial) {
  if (!needs_.by_config()) return true;
  const Needs before = trial.needs;
  std::string fault = find_needs(trial);
  if (fault.empty()) fault = shortage_of(trial);
  if (!fault.empty()) {
    trial.needs = before;
    actions_->push_back(Say{fmt::format("Warning: trial {} keeps its resources: {}", trial.id, fault)});
  }
  return trial.needs == before;
}

// Returns what the machine lacks for the trial, if needs depend on the config; fit() has checked all others. In a
// cluster a node that has it may join.
std::string Experiment::shortage_of(const Trial& trial) const {
  if (!needs_.by_config() || cluster_.may_change()) return {};
  const std::string missing = shortage(cluster_, trial.needs);
  return missing.empty() ? "" : "it needs more than there is: " + missing;
}

// A parked worker stays where it is, and keeps its data on the GPUs that it used.
std::optional<resources::Only> Experiment::own_place(const Trial& trial) const {
  if (trial.worker != WorkerState::parked) return std::nullopt;
  if (trial.gpus.empty() && !cluster_.may_change()) return std::nullopt;  // anywhere on the machine
  return resources::Only{trial.node, trial.gpus.empty() ? std::nullopt : std::optional(trial.gpus)};
}

// Returns true if there is room for the trial where its parked worker is, or where a new one could be.
bool Experiment::has_room(const Trial& trial, const Needs& needs) {
  const std::optional<resources::Only> own = own_place(trial);
  if (!own) return tune::has_room(cluster_, needs);
  return trial.shares.empty() ? cluster_.is_free(needs.total, own) : is_free_again(cluster_, trial.shares);
}

void Experiment::launch(Trial& trial) {
  ++trial.attempt;
  ++state_.workers;
  Launch launch = start_of(trial);
  Dict data{{"attempt", trial.attempt}, {"checkpoint", launch.checkpoint}};
  if (cluster_.may_change()) data.emplace_back("node", trial.node);
  if (!trial.shares.empty()) {
    List further;
    for (const Share& share : trial.shares | std::views::drop(1)) further.emplace_back(share.place.node);
    data.emplace_back("further_nodes", std::move(further));
  }
  record(DecisionKind::launch, trial, std::move(data));
  actions_->push_back(std::move(launch));
  limit_running(trial);
}

// Makes the trial's worker go on with the assignment that a new worker would get.
void Experiment::take_over(Trial& trial) {
  trial.takes_over = false;
  trial.reported_checkpoint.clear();
  if (trial.started_from) checkpoints_.release(*std::exchange(trial.started_from, std::nullopt));
  Launch start = start_of(trial);
  record(DecisionKind::take_over, trial, {{"checkpoint", start.checkpoint}});
  actions_->push_back(TakeOver{std::move(start)});
  limit_running(trial);
}

// Marks the worker as busy; returns the Launch that continues the trial from its latest checkpoint.
Launch Experiment::start_of(Trial& trial) {
  set_worker(trial, WorkerState::busy);
  trial.restoring = trial.latest_checkpoint.has_value();
  trial.untold = false;
  trial.ended_by = EndedBy::itself;
  Launch launch{.trial = trial.index,
                .attempt = trial.attempt,
                .config = trial.config,
                .needs = trial.present_needs(),
                .place = trial.place(),
                .machine = cluster_.node(trial.node).resources,
                .shares = trial.shares};
  for (const Share& share : trial.shares) launch.machines.push_back(cluster_.node(share.place.node).resources);
  if (trial.latest_checkpoint) {
    const checkpoint::CheckpointRecord& from = checkpoints_.get(*trial.latest_checkpoint);
    launch.checkpoint = from.directory;
    launch.checkpoint_metrics = from.metrics;
    launch.step = from.step;
    checkpoints_.retain(from.id);
    trial.started_from = from.id;
  }
  trial.time_total_s = launch.checkpoint_metrics.number(result_key::time_total_s).value_or(0);
  return launch;
}

void Experiment::resume(Trial& trial) {
  if (state_.interrupted) return interrupt(trial);
  actions_->push_back(
      AnswerReport{trial.index, trial.attempt, channel::Verdict::go_on, std::exchange(trial.reported_checkpoint, {}),
                   std::exchange(trial.untold, false) ? std::optional(trial.present_needs()) : std::nullopt});
  set_worker(trial, WorkerState::busy);
  limit_running(trial);
}

}  // namespace cadre::tune
