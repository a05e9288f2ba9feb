// Every searcher that comes with Cadre keeps the contract of cadre/tune/searcher.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/faults.h"
#include "cadre/tune/searchers.h"
#include "cadre/tune/tuner.h"
#include "tune/held_options.h"
#include "tune/options/check_search_space.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Subject {
  std::string name;
  AnySearcher searcher;
};

// Searchers with options by which a short history reaches all their stages.
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"RandomSearch", RandomSearch{}},
      {"Sobol", QuasiRandom{}},
      {"Halton", QuasiRandom{.sequence = Sequence::halton}},
      {"TPE", TPE{.n_startup_trials = 5}},
      {"TPEOfEachParameter", TPE{.n_startup_trials = 5, .multivariate = false, .constant_liar = false}},
      {"CMAES", CMAES{.popsize = 5}},
      {"NSGA2", NSGA2{.population_size = 8}},
      {"GaussianProcess", GaussianProcess{.n_startup_trials = 5}},
      {"BOHB", BOHB{.max_t = 9, .min_observations = 4}},
      {"ConcurrencyLimiter", ConcurrencyLimiter{.searcher = RandomSearch{}, .max_concurrent = 3}},
      {"Batches", ConcurrencyLimiter{.searcher = RandomSearch{}, .max_concurrent = 3, .batch = true}},
      {"Repeater", Repeater{.searcher = RandomSearch{}, .repeat = 3}},
      {"RepeaterOfNSGA2", Repeater{.searcher = NSGA2{.population_size = 4}, .repeat = 2}},
      {"RepeaterOfCMAES", Repeater{.searcher = CMAES{.popsize = 5}, .repeat = 2}},
      {"WarmStart",
       WarmStart{.searcher = RandomSearch{}, .trials = {{{{"x", 0.5}, {"n", 3}, {"act", "relu"}, {"opt", "sgd"}}}}}}};
  return all;
}

Space mixed_space() {
  return {{"x", uniform(-2, 2)},
          {"n", qrandint(0, 12, 3)},
          {"act", choice({"relu", "tanh", "gelu"})},
          {"opt", choice({"sgd", Space{{"name", "adam"}, {"lr", loguniform(1e-4, 1)}, {"beta", randn(0, 1)}}})}};
}

SearcherSetting setting(Mode mode = Mode::min) {
  return {.seed = 7, .space = mixed_space(), .metric = {"loss", mode}, .num_samples = 100};
}

// Tells a searcher about trials, and a new one the same as a restore does.
class History {
 public:
  History(const AnySearcher& searcher, const SearcherSetting& setting)
      : options_(searcher),
        setting_(setting),
        tuning_{.num_samples = 1000, .seed = setting.seed},
        variants_(setting.space, tuning_),
        searcher_(searcher.make(setting)) {}

  std::optional<Config> suggest() const { return searcher_->suggest(next()); }
  // Adds a trial with the suggested values; returns false if there are none.
  bool add() {
    const std::optional<Config> values = suggest();
    if (!values) return false;
    Faults faults;
    check_point(values->dict(), setting_.space, "value", faults);
    faults.throw_if_any("the suggestion");
    trials_.push_back({.config = variants_(next(), *values).config});
    searcher_->on_trial_add(next() - 1, trials_.back().config);
    return true;
  }
  void report(TrialIndex trial, const Metrics& result) {
    trials_[trial].result = result;
    searcher_->on_result(trial, result);
  }
  void end(TrialIndex trial, TrialStatus status) {
    trials_[trial].status = status;
    searcher_->on_trial_end(trial, status, trials_[trial].result);
  }
  void run_again(TrialIndex trial) {
    trials_[trial].status = TrialStatus::running;
    searcher_->on_trial_add(trial, trials_[trial].config);
  }
  // Returns a new searcher in the state of this one, as a restore makes it.
  std::unique_ptr<Searcher> restored() const {
    std::unique_ptr<Searcher> again = options_.make(setting_);
    for (TrialIndex i = 0; i < next(); ++i) again->on_trial_add(i, trials_[i].config);
    for (TrialIndex i = 0; i < next(); ++i) {
      if (trials_[i].status != TrialStatus::running) again->on_trial_end(i, trials_[i].status, trials_[i].result);
    }
    again->load(base::parse_json(to_json(searcher_->save()), "the state"));
    return again;
  }
  void restore() { searcher_ = restored(); }
  // Returns the trials that have not ended, or those that have failed.
  std::vector<TrialIndex> of_status(TrialStatus status) const {
    std::vector<TrialIndex> found;
    for (TrialIndex i = 0; i < next(); ++i) {
      if (trials_[i].status == status) found.push_back(i);
    }
    return found;
  }
  TrialIndex next() const { return static_cast<TrialIndex>(trials_.size()); }
  const Config& config(TrialIndex trial) const { return trials_.at(trial).config; }
  std::string state() const { return to_json(searcher_->save()); }

 private:
  struct Member {
    Config config = {};
    TrialStatus status = TrialStatus::running;
    Metrics result = {};
  };
  AnySearcher options_;
  SearcherSetting setting_;
  TuneConfig tuning_;
  VariantGenerator variants_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<Member> trials_ = {};
};

double loss_of(const Config& config) {
  const double x = config.get<double>("x");
  return std::round(16 * (x * x + std::abs(config.get<double>("n") - 6) / 6 +
                          (config.get<std::string>("act") == "relu" ? 0 : 1))) /
         16;  // with ties
}

// Random events of a history: new trials, results, ends of all kinds, and failed trials that run again.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : random_(seed), slots_(1 + random_() % 8) {}

  void step(History& history, double sign = 1) {
    const std::vector<TrialIndex> open = history.of_status(TrialStatus::running);
    if (open.size() < slots_ && random_() % 3 != 0 && history.add()) return;
    const std::vector<TrialIndex> failed = history.of_status(TrialStatus::error);
    if (!failed.empty() && random_() % 8 == 0) return history.run_again(failed[random_() % failed.size()]);
    if (open.empty()) return;
    finish_or_report(history, open[random_() % open.size()], sign);
  }

 private:
  void finish_or_report(History& history, TrialIndex trial, double sign) {
    const double loss = sign * loss_of(history.config(trial));
    const auto kind = random_() % 12;
    const auto iteration = static_cast<std::int64_t>(1 + random_() % 9);
    if (kind == 0) return history.end(trial, TrialStatus::error);
    history.report(trial, {{"loss", kind == 1 ? kNan : loss}, {"training_iteration", iteration}});
    if (kind == 2) history.report(trial, {{"training_iteration", iteration + 1}});
    if (kind < 5) return history.end(trial, TrialStatus::stopped);
    if (kind < 10) history.end(trial, TrialStatus::terminated);
  }

  std::mt19937_64 random_;
  std::size_t slots_;
};

class SearcherConformance : public ::testing::TestWithParam<Subject> {};

TEST_P(SearcherConformance, ARestoreAtAnyMomentSuggestsTheSame) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    History history(GetParam().searcher, setting());
    RandomEvents events(seed);
    for (int i = 0; i < 120; ++i) {
      events.step(history);
      const std::unique_ptr<Searcher> again = history.restored();
      ASSERT_EQ(history.suggest(), again->suggest(history.next())) << "event " << i;
      ASSERT_EQ(history.state(), to_json(again->save())) << "event " << i;
    }
  }
}

TEST_P(SearcherConformance, ARestoredSearcherGoesOnAsTheFirstWouldHave) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    History through(GetParam().searcher, setting());
    History restored(GetParam().searcher, setting());
    RandomEvents events(seed);
    RandomEvents same_events(seed);
    for (int i = 0; i < 120; ++i) {
      events.step(through);
      if (i % 7 == 3) restored.restore();
      same_events.step(restored);
      ASSERT_EQ(through.next(), restored.next());
      if (through.next() > 0) {
        ASSERT_EQ(through.config(through.next() - 1), restored.config(restored.next() - 1)) << "event " << i;
      }
    }
  }
}

TEST_P(SearcherConformance, AskingLeavesNoTrace) {
  History asked(GetParam().searcher, setting());
  History other(GetParam().searcher, setting());
  RandomEvents events(1);
  RandomEvents same_events(1);
  for (int i = 0; i < 80; ++i) {
    for (int time = 0; time < i % 3; ++time) asked.suggest();
    events.step(asked);
    same_events.step(other);
    ASSERT_EQ(asked.next(), other.next());
    if (asked.next() > 0) {
      ASSERT_EQ(asked.config(asked.next() - 1), other.config(other.next() - 1)) << "event " << i;
    }
  }
}

TEST_P(SearcherConformance, LargeIsGoodIfTheModeSaysSo) {
  History small(GetParam().searcher, setting(Mode::min));
  History large(GetParam().searcher, setting(Mode::max));
  RandomEvents events(2);
  RandomEvents same_events(2);
  for (int i = 0; i < 120; ++i) {
    events.step(small);
    same_events.step(large, -1);
    ASSERT_EQ(small.next(), large.next());
    if (small.next() > 0) {
      ASSERT_EQ(small.config(small.next() - 1), large.config(large.next() - 1)) << "event " << i;
    }
  }
}

TEST_P(SearcherConformance, AnotherSeedSuggestsOtherConfigs) {
  SearcherSetting other = setting();
  other.seed = 8;
  History first(GetParam().searcher, setting());
  History second(GetParam().searcher, other);
  ASSERT_TRUE(first.add() && second.add());
  EXPECT_NE(first.config(0), second.config(0));
}

INSTANTIATE_TEST_SUITE_P(All, SearcherConformance, ::testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

// ---- What a Repeater counts as repetitions

TEST(Repeater, ConfigsThatLackParametersAreRepeated) {
  const auto searcher = Repeater{.searcher = TPE{.n_startup_trials = 3}, .repeat = 2}.make(setting());
  for (TrialIndex trial = 0; trial < 6; ++trial) {
    const double x = static_cast<double>(trial / 2) / 4;
    searcher->on_trial_add(trial, {{"x", x}, {"n", 3}, {"act", "relu"}, {"opt", "sgd"}});
    searcher->on_trial_end(trial, TrialStatus::terminated, {{"loss", x}});
  }
  EXPECT_THAT(searcher->debug_string(), ::testing::HasSubstr("of 3 trials"));
}

// The value at the coordinate of another one may have another last digit.
TEST(Repeater, ARepetitionMayDifferByRounding) {
  SearcherSetting normal = setting();
  normal.space = {{"x", randn(0, 1)}};
  const auto searcher = Repeater{.searcher = TPE{.n_startup_trials = 100}, .repeat = 2}.make(normal);
  for (TrialIndex trial = 0; trial < 200; trial += 2) {
    searcher->on_trial_add(trial, {{"x", -2 + 0.0203 * trial}});
    searcher->on_trial_add(trial + 1, *searcher->suggest(trial + 1));
    for (const TrialIndex one : {trial, trial + 1})
      searcher->on_trial_end(one, TrialStatus::terminated, {{"loss", trial}});
  }
  EXPECT_THAT(searcher->debug_string(), ::testing::HasSubstr("of 100 trials"));
}

TEST(Repeater, TrialsThatCameFurtherBeforeTheyWereStoppedAreBetter) {
  SearcherSetting line = setting();
  line.space = {{"x", uniform(0, 1)}};
  const auto searcher = Repeater{.searcher = CMAES{.restart = Restart::none}, .repeat = 2}.make(line);
  double latest = 0;
  for (TrialIndex trial = 0; trial < 200; trial += 2) {
    for (const TrialIndex one : {trial, trial + 1}) {
      const Config config = *searcher->suggest(one);
      searcher->on_trial_add(one, config);
      latest = config.get<double>("x");
    }
    const auto iteration = static_cast<std::int64_t>(1000 * latest);
    for (const TrialIndex one : {trial, trial + 1})
      searcher->on_trial_end(one, TrialStatus::stopped, {{"loss", latest}, {"training_iteration", iteration}});
  }
  EXPECT_GT(latest, 0.8);
}

TEST(WarmStart, ARepeaterBelongsAroundItAndNotIntoIt) {
  const std::vector<WarmStart::EarlierTrial> trials = {{.config = {{"x", 0.5}}, .result = {{"loss", 1}}}};
  const auto check = [](const auto& searcher) {
    Faults faults;
    searcher.check(TunerOptions(), faults);
    faults.throw_if_any("the experiment");
  };
  const AnySearcher repeater = Repeater{.searcher = RandomSearch{}};
  for (const AnySearcher& inner : {repeater, AnySearcher(ConcurrencyLimiter{.searcher = repeater})}) {
    EXPECT_THAT([&] { check(WarmStart{.searcher = inner, .trials = trials}); },
                ::testing::ThrowsMessage<InvalidArgument>(::testing::HasSubstr("put the WarmStart into it")));
  }
  EXPECT_NO_THROW(check(Repeater{.searcher = WarmStart{.searcher = RandomSearch{}, .trials = trials}}));
}

// A searcher that is forgotten above is one that nobody tests.
TEST(SearcherConformance, EverySearcherIsTested) {
  std::set<std::string> tested;
  for (const Subject& subject : subjects()) tested.insert(std::string(subject.searcher.name()));
  for (const std::string& name : option_types<Searcher, SearcherSetting>().names()) {
    // Halving belongs to another test; a program and a host have tests of their own.
    if (name == "Halving" || name == "ExternalSearcher" || name == "HostSearcher") continue;
    EXPECT_TRUE(tested.contains(name)) << name;
  }
}

}  // namespace
}  // namespace cadre::tune
