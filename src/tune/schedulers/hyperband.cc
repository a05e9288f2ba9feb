#include "cadre/tune/schedulers/hyperband.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"

namespace cadre::tune {
namespace {

// Powers that are whole numbers must not be rounded to the next one.
constexpr double kRounding = 1e-9;

double round_down(double value) { return std::floor(value * (1 + kRounding)); }
std::int64_t round_up(double value) { return static_cast<std::int64_t>(std::ceil(value * (1 - kRounding))); }

std::int64_t most_halvings(const HyperBandScheduler& settings) {
  std::int64_t most = 0;
  for (double product = settings.reduction_factor; round_down(settings.max_t / product) >= 1;
       product *= settings.reduction_factor)
    ++most;
  return most;
}

class HyperBand final : public Scheduler {
 public:
  explicit HyperBand(HyperBandScheduler settings) : settings_(std::move(settings)) {}

  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Decision on_trial_end(const TrialView& trial, const Population& population) override;
  bool may_run(TrialIndex trial) const override;
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override;
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  // A trial that waits at a milestone.
  struct Place {
    double time = 0;
    double score = 0;
  };
  struct Bracket {
    std::int64_t halvings = 0;  // in all
    std::int64_t done = 0;      // of them
    std::int64_t size = 0;      // trials when it is full
    std::int64_t added = 0;     // trials so far
    std::int64_t left = 0;      // trials after the last halving
    std::set<TrialIndex> live = {};
    std::map<TrialIndex, Place> waiting = {};  // at the present milestone
  };
  struct State {
    std::vector<Bracket> brackets = {};
    std::vector<std::int64_t> bracket_of = {};  // by the trial's index
    std::int64_t stopped = 0;
  };

  Bracket next_bracket() const;
  Bracket& bracket_of(TrialIndex trial) {
    return state_.brackets.at(static_cast<std::size_t>(state_.bracket_of.at(trial)));
  }
  const Bracket& bracket_of(TrialIndex trial) const {
    return state_.brackets.at(static_cast<std::size_t>(state_.bracket_of.at(trial)));
  }
  double milestone(const Bracket& bracket) const;
  static bool is_complete(const Bracket& bracket, const Population& population);
  void compare(Bracket& bracket, std::optional<TrialIndex> reporter, const Population& population, Decision& decision);
  void halve(Bracket& bracket, std::optional<TrialIndex> reporter, Decision& decision);

  HyperBandScheduler settings_;
  State state_;
};

// ---- Brackets

HyperBand::Bracket HyperBand::next_bracket() const {
  const std::int64_t most = most_halvings(settings_);
  const auto before = static_cast<std::int64_t>(state_.brackets.size());
  const std::int64_t halvings = most - before % (most + 1);
  const double share = static_cast<double>(most + 1) / static_cast<double>(halvings + 1);
  return {.halvings = halvings,
          .size = round_up(share * std::pow(settings_.reduction_factor, static_cast<double>(halvings)))};
}

double HyperBand::milestone(const Bracket& bracket) const {
  const auto to_come = static_cast<double>(bracket.halvings - bracket.done);
  return to_come == 0 ? settings_.max_t : round_down(settings_.max_t / std::pow(settings_.reduction_factor, to_come));
}

void HyperBand::on_trial_add(const TrialView& trial) {
  std::vector<Bracket>& brackets = state_.brackets;
  if (trial.index() < state_.bracket_of.size()) {  // it had failed
    bracket_of(trial.index()).live.insert(trial.index());
    return;
  }
  if (brackets.empty() || brackets.back().added == brackets.back().size) brackets.push_back(next_bracket());
  state_.bracket_of.push_back(std::ssize(brackets) - 1);
  ++brackets.back().added;
  brackets.back().live.insert(trial.index());
}

// ---- Decisions

Decision HyperBand::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  const std::optional<double> time = control::finite_number(result, settings_.time_attr);
  const std::optional<double> metric = result.number(settings_.metric.name);
  Bracket& bracket = bracket_of(trial.index());
  if (!time || !metric || *time < milestone(bracket)) return {};
  if (bracket.done == bracket.halvings)
    return {.kind = settings_.stop_last_trials ? Decision::Kind::finish : Decision::Kind::go_on};
  const double score = settings_.mode == Mode::min ? -*metric : *metric;
  bracket.waiting[trial.index()] = {*time, std::isnan(score) ? -std::numeric_limits<double>::infinity() : score};
  Decision decision{.kind = Decision::Kind::pause};
  compare(bracket, trial.index(), population, decision);
  return decision;
}

Decision HyperBand::on_trial_end(const TrialView& trial, const Population& population) {
  Bracket& bracket = bracket_of(trial.index());
  bracket.live.erase(trial.index());
  bracket.waiting.erase(trial.index());
  Decision decision;
  compare(bracket, std::nullopt, population, decision);
  return decision;
}

// Returns true if no trial will be added to the bracket.
bool HyperBand::is_complete(const Bracket& bracket, const Population& population) {
  return bracket.added == bracket.size || population.trials_to_come() == 0;
}

// Halves the bracket if all its trials wait; more than once if they are beyond the next milestone, too.
void HyperBand::compare(Bracket& bracket, std::optional<TrialIndex> reporter, const Population& population,
                        Decision& decision) {
  if (!is_complete(bracket, population)) return;
  while (!bracket.live.empty() && bracket.waiting.size() == bracket.live.size() && bracket.done < bracket.halvings)
    halve(bracket, reporter, decision);
  if (reporter && decision.kind == Decision::Kind::pause && !bracket.waiting.contains(*reporter))
    decision.kind = Decision::Kind::go_on;
}

void HyperBand::halve(Bracket& bracket, std::optional<TrialIndex> reporter, Decision& decision) {
  const std::int64_t before = bracket.done == 0 ? bracket.added : bracket.left;
  bracket.left = round_up(static_cast<double>(before) / settings_.reduction_factor);
  ++bracket.done;
  std::vector<TrialIndex> ranking(bracket.live.begin(), bracket.live.end());
  std::ranges::stable_sort(ranking, std::ranges::greater(),
                           [&](TrialIndex trial) { return bracket.waiting.at(trial).score; });
  const auto good = static_cast<std::size_t>(std::min<std::int64_t>(bracket.left, std::ssize(ranking)));
  for (const TrialIndex trial : std::span(ranking).subspan(good)) {
    bracket.live.erase(trial);
    bracket.waiting.erase(trial);
    ++state_.stopped;
    if (trial == reporter) {
      decision.kind = Decision::Kind::stop;
    } else {
      decision.stopped.push_back(trial);
    }
  }
  const bool is_last = bracket.done == bracket.halvings;  // a trial finishes there with its own result
  const double next = milestone(bracket);
  std::erase_if(bracket.waiting, [&](const auto& place) { return is_last || place.second.time < next; });
}

bool HyperBand::may_run(TrialIndex trial) const { return !bracket_of(trial).waiting.contains(trial); }

// Prefers trials that have come farther: their processes hold memory.
std::optional<TrialIndex> HyperBand::choose(const Candidates& candidates, const Population&) {
  std::optional<TrialIndex> best;
  std::int64_t most = -1;
  for (const TrialIndex trial : candidates) {
    const std::int64_t done = bracket_of(trial).done;
    if (!may_run(trial) || done <= most) continue;
    best = trial;
    most = done;
  }
  return best;
}

// ---- State

void HyperBand::load(const Value& saved) {
  auto state = from_value<State>(saved);
  const std::int64_t brackets = std::ssize(state.brackets);
  if (state.bracket_of.size() != state_.bracket_of.size() ||
      !std::ranges::all_of(state.bracket_of, [&](std::int64_t one) { return one >= 0 && one < brackets; }))
    throw InvalidArgument("the state is one of other trials or brackets");
  state_ = std::move(state);
}

std::string HyperBand::debug_string() const {
  std::vector<std::string> texts;
  for (const Bracket& bracket : state_.brackets) {
    if (!bracket.live.empty())
      texts.push_back(fmt::format("{} of {} trials up to {:g}", bracket.live.size(), bracket.size, milestone(bracket)));
  }
  return fmt::format("HyperBand: {} stopped early{}{}", state_.stopped, texts.empty() ? "" : "; brackets ",
                     fmt::join(texts, ", "));
}

}  // namespace

std::unique_ptr<Scheduler> HyperBandScheduler::make(const SchedulerSetting&) const {
  return std::make_unique<HyperBand>(*this);
}

void HyperBandScheduler::check(const TunerOptions&, Faults& faults) const {
  faults.unless(!time_attr.empty(), "time_attr", "say what max_t counts, such as \"training_iteration\"");
  faults.unless(
      max_t >= 1 && max_t <= 1e9, "max_t",
      fmt::format("it is {}; it must be from 1 to 10^9, as the largest bracket has about so many trials", max_t));
  faults.unless(std::isfinite(reduction_factor) && reduction_factor >= 1.1, "reduction_factor",
                fmt::format("it is {}; it must be 1.1 or more", reduction_factor));
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, HyperBandScheduler>;

}  // namespace cadre::tune
