#include "cadre/tune/schedulers/resource_changing_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cadre/tune/schedulers/fifo.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "resources/amounts.h"
#include "tune/inner_options.h"

namespace cadre::tune {
namespace {

using resources::Amounts;

Amounts amounts_of(const std::map<std::string, double>& wanted) {
  Amounts amounts;
  for (const auto& [name, amount] : wanted) amounts[name] = resources::units(amount);
  return amounts;
}

void add(Amounts& sum, const Amounts& amounts, std::int64_t times) {
  for (const auto& [name, amount] : amounts) sum[name] += times * amount;
}

// Returns how many steps are in the amounts, rounded down: negative if something is missing.
std::int64_t steps_in(const Amounts& amounts, const Amounts& step) {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, amount] : step) {
    if (amount == 0) continue;
    const auto found = amounts.find(name);
    const std::int64_t there = found == amounts.end() ? 0 : found->second;
    steps = std::min(steps, there / amount - (there % amount < 0 ? 1 : 0));
  }
  return steps;
}

// The state of the machine in steps, for a trial that has just reported.
struct Supply {
  std::int64_t contenders = 0;
  std::int64_t spare = 0;  // beyond the base of all contenders, 0 or more
  std::int64_t free = 0;   // beyond what they have or are to begin with; negative: so many are missing
};

Supply supply_for(const TrialView& trial, const Amounts& step, const Amounts& reserved, const Population& population) {
  const Amounts base = resources::amounts_of(trial.base_resources());
  Amounts spare = resources::amounts_of(population.machine());
  add(spare, reserved, -1);
  Amounts free = spare;
  const std::set<TrialIndex>& holders = population.trials_with_resources();
  for (const TrialIndex index : holders) {
    const TrialView one = population.trial(index);
    add(spare, resources::amounts_of(one.base_resources()), -1);
    add(free, resources::amounts_of(one.resources()), -1);
  }
  // The others that there is room for need what this one needs.
  const auto held = static_cast<std::int64_t>(holders.size());
  const std::int64_t others =
      std::max<std::int64_t>(std::min(population.contenders() - held, steps_in(spare, base)), 0);
  add(spare, base, -others);
  add(free, base, -others);
  return {held + others, std::max<std::int64_t>(steps_in(spare, step), 0), steps_in(free, step)};
}

bool is_worth_more(const Metrics& a, const Metrics& b, const DistributeResourcesToTopJob& rule) {
  const auto score = [&](const Metrics& result) {
    const double value = result.number(rule.metric.name).value_or(std::numeric_limits<double>::quiet_NaN());
    if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
    return rule.mode == Mode::min ? -value : value;
  };
  return score(a) > score(b);
}

class ResourceChanger final : public Scheduler {
 public:
  ResourceChanger(ResourceChangingScheduler settings, const SchedulerSetting& setting)
      : settings_(std::move(settings)), inner_(settings_.scheduler.make(setting)) {}

  bool needs_whole_population() const override { return inner_->needs_whole_population(); }
  bool begins_with_first_config() const override { return inner_->begins_with_first_config(); }
  void on_trial_add(const TrialView& trial) override { inner_->on_trial_add(trial); }
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Decision on_trial_end(const TrialView& trial, const Population& population) override {
    return inner_->on_trial_end(trial, population);
  }
  Decision on_deadline(std::int64_t number, const Population& population) override {
    return inner_->on_deadline(number, population);
  }
  Decision on_controller_start(const Population& population) override {
    return inner_->on_controller_start(population);
  }
  bool may_run(TrialIndex trial) const override { return inner_->may_run(trial); }
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override {
    return inner_->choose(candidates, population);
  }
  Value save() const override { return inner_->save(); }
  void load(const Value& state) override { inner_->load(state); }
  std::string debug_string() const override { return "(ResourceChangingScheduler) " + inner_->debug_string(); }

 private:
  // A trial that may get more.
  struct Share {
    std::int64_t steps = 0;                                         // that it has
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();  // of steps
  };

  template <class Rule>
  static Amounts step_of(const TrialView& trial, const Rule& rule);
  template <class Rule>
  static Share share_of(const TrialView& trial, const Rule& rule);
  static std::int64_t most_steps(const TrialView&, const Metrics&, const DistributeResources&, const Supply&,
                                 const Population&);
  static std::int64_t most_steps(const TrialView&, const Metrics&, const DistributeResourcesToTopJob&, const Supply&,
                                 const Population&);
  template <class Rule>
  static std::optional<Resources> resources_for(const TrialView& trial, const Metrics& result, const Rule& rule,
                                                const Population& population);

  ResourceChangingScheduler settings_;
  std::unique_ptr<Scheduler> inner_;
};

Decision ResourceChanger::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  Decision decision = inner_->on_result(trial, result, population);
  if (decision.kind != Decision::Kind::go_on || decision.resources) return decision;
  const std::optional<Resources> resources = std::visit(
      [&](const auto& rule) { return resources_for(trial, result, rule, population); }, settings_.resources_allocation);
  if (resources) decision.resources = ResourceChange{*resources, settings_.restart};
  return decision;
}

template <class Rule>
Amounts ResourceChanger::step_of(const TrialView& trial, const Rule& rule) {
  if (!rule.increase_by.empty()) return tune::amounts_of(rule.increase_by);
  return {{trial.base_resources().gpus >= 1 ? "gpus" : "cpus", resources::kUnitsPerWhole}};
}

template <class Rule>
ResourceChanger::Share ResourceChanger::share_of(const TrialView& trial, const Rule& rule) {
  Amounts added = resources::amounts_of(trial.resources());
  add(added, resources::amounts_of(trial.base_resources()), -1);
  Share share{.steps = std::max<std::int64_t>(steps_in(added, step_of(trial, rule)), 0)};
  if (rule.increase_by_times > 0) share.limit = rule.increase_by_times;
  return share;
}

std::int64_t ResourceChanger::most_steps(const TrialView&, const Metrics&, const DistributeResources&,
                                         const Supply& supply, const Population&) {
  return supply.spare / supply.contenders + (supply.spare % supply.contenders > 0 ? 1 : 0);
}

std::int64_t ResourceChanger::most_steps(const TrialView& trial, const Metrics& result,
                                         const DistributeResourcesToTopJob& rule, const Supply&,
                                         const Population& population) {
  const Share own = share_of(trial, rule);
  for (const TrialIndex index : population.trials_with_resources()) {
    const TrialView other = population.trial(index);
    if (index == trial.index() || other.status() != TrialStatus::running) continue;
    const Share share = share_of(other, rule);
    if (share.steps < share.limit && is_worth_more(other.last_result(), result, rule)) return own.steps;
  }
  return std::numeric_limits<std::int64_t>::max();
}

// Returns the trial's resources from now on; empty: it keeps what it has.
template <class Rule>
std::optional<Resources> ResourceChanger::resources_for(const TrialView& trial, const Metrics& result, const Rule& rule,
                                                        const Population& population) {
  const Amounts step = step_of(trial, rule);
  const Supply supply = supply_for(trial, step, tune::amounts_of(rule.reserve_resources), population);
  const Share share = share_of(trial, rule);
  const std::int64_t most = std::min(most_steps(trial, result, rule, supply, population), share.limit);
  const std::int64_t steps = std::max<std::int64_t>(std::min(share.steps + supply.free, most), 0);
  if (steps == share.steps) return std::nullopt;
  Amounts amounts = resources::amounts_of(trial.base_resources());
  add(amounts, step, steps);
  return resources::with_amounts(trial.base_resources(), amounts);
}

template <class Rule>
void check_rule(const Rule& rule, Faults& faults) {
  const auto check_names = [&](const std::string& option, const std::map<std::string, double>& amounts, double least) {
    for (const auto& [name, amount] : amounts) {
      const char* known = name == "CPU" ? "cpus" : name == "GPU" ? "gpus" : nullptr;
      faults.unless(known == nullptr, option,
                    fmt::format("\"{}\" is \"{}\" here", name, known == nullptr ? "" : known));
      faults.unless(std::isfinite(amount) && amount >= least, option,
                    fmt::format("the amount of \"{}\" is {:g}; it must be at least {:g}", name, amount, least));
      faults.unless(name != "gpus" || amount == std::floor(amount), option,
                    fmt::format("there are {:g} gpus; trials get whole ones", amount));
    }
  };
  check_names("increase_by", rule.increase_by, 1e-4);
  check_names("reserve_resources", rule.reserve_resources, 0);
  faults.unless(rule.increase_by_times >= 0, "increase_by_times",
                fmt::format("it is {}; it must be 0 (no limit) or more", rule.increase_by_times));
}

}  // namespace

std::unique_ptr<Scheduler> ResourceChangingScheduler::make(const SchedulerSetting& setting) const {
  return std::make_unique<ResourceChanger>(*this, setting);
}

void ResourceChangingScheduler::complete(TunerOptions& options, std::vector<std::string>& notes) {
  if (scheduler.empty()) scheduler = FIFO{};
  complete_inner(scheduler, options, notes);
  if (auto* top_job = std::get_if<DistributeResourcesToTopJob>(&resources_allocation))
    detail::complete_metric(options, top_job->metric, top_job->mode);
}

void ResourceChangingScheduler::check(const TunerOptions& options, Faults& faults) const {
  check_inner(scheduler, "scheduler", "tune::FIFO{}", options, faults);
  Faults of_rule;
  std::visit([&](const auto& rule) { check_rule(rule, of_rule); }, resources_allocation);
  if (const auto* top_job = std::get_if<DistributeResourcesToTopJob>(&resources_allocation)) {
    const TuneConfig& tune = options.tune_config;
    const std::string fault =
        control::fault_of(top_job->metric, top_job->mode, "its mode", {tune.metric.name, tune.mode});
    of_rule.unless(!top_job->metric.name.empty(), "metric", "it has none, and the TuneConfig has none");
    of_rule.unless(fault.empty() || top_job->metric.name.empty(), "metric", fault);
  }
  faults.add_all("resources_allocation", of_rule);
}

void ResourceChangingScheduler::take_over(const ResourceChangingScheduler& stored) {
  take_over_inner(scheduler, stored.scheduler);
}

Scheduler::Traits ResourceChangingScheduler::traits() const {
  Scheduler::Traits traits = traits_of_inner(scheduler);
  if (const auto* top_job = std::get_if<DistributeResourcesToTopJob>(&resources_allocation))
    traits.metrics.push_back(top_job->metric.name);
  return traits;
}

std::vector<std::pair<std::string, Config>> ResourceChangingScheduler::later_configs(const Config& first) const {
  return scheduler.held().later_configs(first);
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, ResourceChangingScheduler>;

}  // namespace cadre::tune
