#include "cadre/tune/schedulers/asha.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "tune/schedulers/running_percentile.h"

namespace cadre::tune {
namespace {

constexpr std::int64_t kMostRungs = 1000;

// Returns the time_attr of each rung, the lowest first; of the lowest bracket one more than kMostRungs at most.
// Multiplies, because logarithms round the top rung away: log(243) / log(3) is below 5.
std::vector<double> milestones_of(const ASHAScheduler& settings, std::int64_t bracket) {
  constexpr double kRounding = 1 + 1e-12;
  std::vector<double> milestones;
  double milestone = settings.grace_period;
  for (std::int64_t rung = 0; rung <= kMostRungs && milestone <= settings.max_t * kRounding; ++rung) {
    if (rung >= bracket) milestones.push_back(std::min(milestone, settings.max_t));
    milestone *= settings.reduction_factor;
  }
  return milestones;
}

// A trial and its score at a rung, the better one later; among equal scores the one that was made first is better.
struct Place {
  double score = 0;
  TrialIndex trial = 0;
  auto operator<=>(const Place& other) const {
    if (score != other.score) return score < other.score ? std::strong_ordering::less : std::strong_ordering::greater;
    return other.trial <=> trial;
  }
  bool operator==(const Place&) const = default;
};

// The best 1/reduction_factor of the trials at a rung, and the others.
class Ranking {
 public:
  explicit Ranking(double reduction_factor) : reduction_factor_(reduction_factor) {}

  // A trial that has begun anew may come with the same score again.
  void add(Place place) {
    if (best_.contains(place) || !others_.insert(place).second) return;
    const auto wanted =
        static_cast<std::size_t>(static_cast<double>(best_.size() + others_.size()) / reduction_factor_);
    if (!best_.empty())
      others_.insert(best_.extract(best_.begin()));  // the new one may be better than the worst of them
    while (best_.size() < wanted) best_.insert(others_.extract(std::prev(others_.end())));
  }
  bool is_among_the_best(Place place) const { return !best_.empty() && place >= *best_.begin(); }
  // Returns all in ascending order.
  std::vector<Place> all() const {
    std::vector<Place> all(others_.begin(), others_.end());
    all.insert(all.end(), best_.begin(), best_.end());
    return all;
  }

 private:
  double reduction_factor_;
  std::set<Place> best_ = {};
  std::set<Place> others_ = {};
};

// The scheduler for tune::ASHAScheduler, which documents its behaviour.
// Source: Li et al. 2020; Ray Tune's AsyncHyperBandScheduler; docs/from-ray-tune.md lists the differences.
class AshaScheduler final : public Scheduler {
 public:
  AshaScheduler(ASHAScheduler settings, std::uint64_t seed);

  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Decision on_trial_end(const TrialView& trial, const Population& population) override;
  bool may_run(TrialIndex trial) const override;
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  static constexpr std::int64_t kNone = -1;

  // The state of a trial.
  struct Member {
    std::int64_t bracket = 0;
    std::vector<bool> recorded = {};  // by rung
    std::int64_t waits_at = kNone;    // promotion: the rung
    double score = 0;                 // there; larger is better
  };
  struct Rung {
    double milestone = 0;
    RunningPercentile scores;  // without promotion
    Ranking ranking;           // with promotion
    std::set<Place> waiting = {};
  };
  using Bracket = std::vector<Rung>;
  struct SavedRung {
    std::vector<double> scores = {};
    std::vector<Place> places = {};
  };
  struct State {
    std::vector<Member> members = {};
    std::set<TrialIndex> free = {};
    std::vector<std::vector<SavedRung>> brackets = {};
    std::int64_t stopped = 0;
  };

  Rung make_rung(double milestone) const {
    return {.milestone = milestone,
            .scores = RunningPercentile(1 - 1 / settings_.reduction_factor),
            .ranking = Ranking(settings_.reduction_factor)};
  }
  std::int64_t draw_bracket(TrialIndex trial) const;
  std::optional<std::size_t> reached(const Member& member, double time) const;
  Decision compare(Rung& rung, double score);
  Decision wait(TrialIndex trial, std::size_t rung, double score, const Population& population);
  void stop_all_if_nobody_can_continue(std::optional<TrialIndex> reporter, const Population& population,
                                       Decision& decision);
  static std::optional<TrialIndex> promotable(const Rung& rung);
  std::optional<TrialIndex> best_promotable(const Candidates* among) const;
  void leave(TrialIndex trial);

  ASHAScheduler settings_;
  std::uint64_t seed_;
  std::vector<Bracket> brackets_;
  std::vector<Member> members_;  // by the trial's index
  std::set<TrialIndex> free_;    // live trials that wait at no rung
  std::int64_t stopped_ = 0;
};

AshaScheduler::AshaScheduler(ASHAScheduler settings, std::uint64_t seed) : settings_(std::move(settings)), seed_(seed) {
  for (std::int64_t index = 0; index < settings_.brackets; ++index) {
    Bracket& bracket = brackets_.emplace_back();
    for (const double milestone : milestones_of(settings_, index)) bracket.push_back(make_rung(milestone));
  }
}

// Brackets are drawn by the softmax of their numbers of rungs.
std::int64_t AshaScheduler::draw_bracket(TrialIndex trial) const {
  std::vector<double> shares;
  double sum = 0;
  for (const Bracket& bracket : brackets_) {
    const double fewer = static_cast<double>(brackets_.front().size()) - static_cast<double>(bracket.size());
    sum += std::exp(-fewer);
    shares.push_back(sum);
  }
  base::RandomStream random(seed_, trial, base::Purpose::bracket);
  const double drawn = random.uniform() * sum;
  const auto found = std::ranges::find_if(shares, [&](double share) { return drawn < share; });
  return std::min<std::int64_t>(found - shares.begin(), settings_.brackets - 1);
}

void AshaScheduler::on_trial_add(const TrialView& trial) {
  if (trial.index() == members_.size()) members_.emplace_back();
  Member& member = members_.at(trial.index());
  free_.insert(trial.index());
  if (!member.recorded.empty() && trial.num_results() > 0) return;  // it continues from a checkpoint
  leave(trial.index());
  member.bracket = draw_bracket(trial.index());
  member.recorded.assign(brackets_.at(static_cast<std::size_t>(member.bracket)).size(), false);
}

// Returns the highest rung that is reached, unless it was before.
std::optional<std::size_t> AshaScheduler::reached(const Member& member, double time) const {
  const Bracket& bracket = brackets_[static_cast<std::size_t>(member.bracket)];
  for (std::size_t rung = bracket.size(); rung-- > 0;) {
    if (time < bracket[rung].milestone) continue;
    if (!member.recorded[rung]) return rung;
    if (!settings_.stop_last_trials || settings_.promote) return std::nullopt;
  }
  return std::nullopt;
}

Decision AshaScheduler::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  const std::optional<double> time = control::finite_number(result, settings_.time_attr);
  const std::optional<double> metric = result.number(settings_.metric.name);
  if (!time || !metric) return {};
  if (*time >= settings_.max_t && settings_.stop_last_trials) return {.kind = Decision::Kind::finish};
  Member& member = members_.at(trial.index());
  const std::optional<std::size_t> at = reached(member, *time);
  if (!at) return {};
  member.recorded[*at] = true;
  const double score = settings_.mode == Mode::min ? -*metric : *metric;
  if (settings_.promote) return wait(trial.index(), *at, score, population);
  return compare(brackets_[static_cast<std::size_t>(member.bracket)][*at], score);
}

// Compares a trial with those that were at the rung before it.
Decision AshaScheduler::compare(Rung& rung, double score) {
  const std::optional<double> limit = rung.scores.value();
  const bool is_bad = limit && !(score >= *limit);  // NaN is bad
  if (!std::isnan(score)) rung.scores.add(score);
  if (!is_bad) return {};
  ++stopped_;
  return {.kind = Decision::Kind::stop};
}

// ---- Promotion

Decision AshaScheduler::wait(TrialIndex trial, std::size_t at, double score, const Population& population) {
  Member& member = members_[trial];
  Rung& rung = brackets_[static_cast<std::size_t>(member.bracket)][at];
  if (std::isnan(score)) score = -std::numeric_limits<double>::infinity();
  rung.ranking.add({score, trial});
  member.waits_at = static_cast<std::int64_t>(at);
  member.score = score;
  rung.waiting.insert({score, trial});
  free_.erase(trial);
  Decision decision{.kind = Decision::Kind::pause};
  stop_all_if_nobody_can_continue(trial, population, decision);
  return decision;
}

// A trial may continue if it is among the best 1/reduction_factor of all that have come to its rung.
std::optional<TrialIndex> AshaScheduler::promotable(const Rung& rung) {
  if (rung.waiting.empty() || !rung.ranking.is_among_the_best(*rung.waiting.rbegin())) return std::nullopt;
  return rung.waiting.rbegin()->trial;
}

// Returns the promotable trial at the highest rung, of those in `among`; nullptr: of all.
std::optional<TrialIndex> AshaScheduler::best_promotable(const Candidates* among) const {
  std::optional<TrialIndex> best;
  double highest = -1;
  for (const Bracket& bracket : brackets_) {
    for (const Rung& rung : bracket) {
      const std::optional<TrialIndex> trial = promotable(rung);
      if (!trial || rung.milestone <= highest || (among != nullptr && !among->contains(*trial))) continue;
      best = trial;
      highest = rung.milestone;
    }
  }
  return best;
}

// Ends the experiment's last trials: nobody runs, nobody is to begin, and none of those that wait is good enough.
void AshaScheduler::stop_all_if_nobody_can_continue(std::optional<TrialIndex> reporter, const Population& population,
                                                    Decision& decision) {
  if (population.trials_to_come() > 0 || !free_.empty() || best_promotable(nullptr)) return;
  for (const TrialIndex one : population.live_trials()) {
    leave(one);
    ++stopped_;
    if (one == reporter) {
      decision.kind = Decision::Kind::stop;
    } else {
      decision.stopped.push_back(one);
    }
  }
}

Decision AshaScheduler::on_trial_end(const TrialView& trial, const Population& population) {
  leave(trial.index());
  free_.erase(trial.index());
  Decision decision;
  if (settings_.promote) stop_all_if_nobody_can_continue(std::nullopt, population, decision);
  return decision;
}

// The trial no longer waits at a rung.
void AshaScheduler::leave(TrialIndex trial) {
  Member& member = members_.at(trial);
  if (member.waits_at == kNone) return;
  brackets_[static_cast<std::size_t>(member.bracket)][static_cast<std::size_t>(member.waits_at)].waiting.erase(
      {member.score, trial});
  member.waits_at = kNone;
  free_.insert(trial);
}

bool AshaScheduler::may_run(TrialIndex trial) const {
  if (!settings_.promote || free_.contains(trial)) return true;
  struct One final : Candidates {
    explicit One(TrialIndex one) : trial(one) {}
    bool contains(TrialIndex other) const override { return other == trial; }
    std::optional<TrialIndex> next(TrialIndex from) const override {
      return from <= trial ? std::optional(trial) : std::nullopt;
    }
    TrialIndex trial;
  };
  const One one(trial);
  return best_promotable(&one).has_value();
}

std::optional<TrialIndex> AshaScheduler::choose(const Candidates& candidates, const Population&) {
  if (!settings_.promote) return candidates.first();
  if (const std::optional<TrialIndex> best = best_promotable(&candidates)) {
    leave(*best);
    return best;
  }
  const auto next = std::ranges::find_if(free_, [&](TrialIndex trial) { return candidates.contains(trial); });
  return next == free_.end() ? std::nullopt : std::optional(*next);
}

// ---- State

Value AshaScheduler::save() const {
  State state{.members = members_, .free = free_, .stopped = stopped_};
  for (const Bracket& bracket : brackets_) {
    std::vector<SavedRung>& saved = state.brackets.emplace_back();
    for (const Rung& rung : bracket) saved.push_back({rung.scores.numbers(), rung.ranking.all()});
  }
  return to_stored(state);
}

void AshaScheduler::load(const Value& saved) {
  const auto state = complete_from_value<State>(saved);
  if (state.members.size() != members_.size() || state.brackets.size() != brackets_.size())
    throw InvalidArgument("the state is one of other trials or brackets");
  members_ = state.members;
  free_ = state.free;
  stopped_ = state.stopped;
  for (std::size_t index = 0; index < brackets_.size(); ++index) {
    Bracket& bracket = brackets_[index];
    if (state.brackets[index].size() != bracket.size()) throw InvalidArgument("the state has other rungs");
    for (std::size_t rung = 0; rung < bracket.size(); ++rung) {
      bracket[rung] = make_rung(bracket[rung].milestone);
      for (const double score : state.brackets[index][rung].scores) bracket[rung].scores.add(score);
      for (const Place& place : state.brackets[index][rung].places) bracket[rung].ranking.add(place);
    }
  }
  for (std::size_t trial = 0; trial < members_.size(); ++trial) {
    const Member& member = members_[trial];
    Bracket& bracket = brackets_.at(static_cast<std::size_t>(member.bracket));
    if (member.recorded.size() != bracket.size()) throw InvalidArgument("the state has other rungs");
    if (member.waits_at != kNone)
      bracket.at(static_cast<std::size_t>(member.waits_at))
          .waiting.insert({member.score, static_cast<TrialIndex>(trial)});
  }
}

std::string AshaScheduler::debug_string() const {
  std::vector<std::string> rungs;
  for (const Bracket& bracket : brackets_) {
    for (const Rung& rung : bracket) {
      const std::optional<double> limit = rung.scores.value();
      if (!limit) continue;
      rungs.push_back(fmt::format("{:g}: {:.4g}", rung.milestone, settings_.mode == Mode::min ? -*limit : *limit));
    }
  }
  return fmt::format("ASHA: {} stopped early{}{}", stopped_, rungs.empty() ? "" : "; rungs ", fmt::join(rungs, ", "));
}

}  // namespace

std::unique_ptr<Scheduler> ASHAScheduler::make(const SchedulerSetting& setting) const {
  return std::make_unique<AshaScheduler>(*this, setting.seed);
}

void ASHAScheduler::check(const TunerOptions&, Faults& faults) const {
  faults.unless(!time_attr.empty(), "time_attr", "say what max_t counts, such as \"training_iteration\"");
  faults.unless(std::isfinite(max_t) && max_t > 0, "max_t", fmt::format("it is {}; it must be above 0", max_t));
  faults.unless(grace_period > 0, "grace_period", fmt::format("it is {}; it must be above 0", grace_period));
  faults.unless(!(grace_period > max_t), "grace_period",
                fmt::format("it is {}, and max_t is {}: no trial would ever be compared", grace_period, max_t));
  faults.unless(std::isfinite(reduction_factor) && reduction_factor > 1, "reduction_factor",
                fmt::format("it is {}; it must be above 1", reduction_factor));
  if (!faults.empty()) return;
  const auto rungs = static_cast<std::int64_t>(milestones_of(*this, 0).size());
  faults.unless(rungs <= kMostRungs, "reduction_factor",
                fmt::format("it is {}, which makes more than {} rungs from the grace_period {} to the max_t {}: take a "
                            "larger one, as 2 or more, or a larger grace_period",
                            reduction_factor, kMostRungs, grace_period, max_t));
  if (!faults.empty()) return;
  faults.unless(brackets >= 1 && brackets <= rungs, "brackets",
                fmt::format("there are {}; from 1 to {} have a rung with this grace_period, reduction_factor and max_t",
                            brackets, rungs));
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, ASHAScheduler>;

}  // namespace cadre::tune
