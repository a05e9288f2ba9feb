// The searcher GaussianProcess: what it suggests, and that a restore suggests the same.
#include "cadre/tune/searchers/gaussian_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "cadre/tune.h"
#include "support/message_of.h"
#include "tune/domain.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

SearcherSetting setting_of(const Space& space, std::uint64_t seed = 1) {
  return {.seed = seed, .space = space, .metric = minimize("loss"), .num_samples = 100};
}

using LossOf = std::function<double(const Config&)>;

// Returns the loss of each of so many trials, one after another.
std::vector<double> losses_of(const AnySearcher& searcher, const Space& space, int trials, const LossOf& loss_of,
                              std::uint64_t seed = 1) {
  Study study(space, {.metric = minimize("loss"), .num_samples = trials, .searcher = searcher, .seed = seed});
  std::vector<double> losses;
  for (int i = 0; i < trials; ++i) {
    const auto [trial, config] = *study.suggest();
    losses.push_back(loss_of(config));
    study.observe(trial, {{"loss", losses.back()}});
  }
  return losses;
}

double best_of(const std::vector<double>& losses) { return *std::ranges::min_element(losses); }

// ---- Domains

const Space every_domain{{"uniform", uniform(-2, 3)},
                         {"quniform", quniform(-0.25, 0.6, 0.1)},
                         {"loguniform", loguniform(1e-5, 10)},
                         {"qloguniform", qloguniform(0.5, 8, 0.5)},
                         {"randn", randn(3, 2)},
                         {"qrandn", qrandn(3, 2, 0.5)},
                         {"randint", randint(-3, 4)},
                         {"qrandint", qrandint(-7, 20, 3)},
                         {"lograndint", lograndint(1, 4000)},
                         {"qlograndint", qlograndint(2, 64, 2)},
                         {"ordinal", ordinal({"small", "medium", 5})},
                         {"choice", choice({1, 2, 4, "none"})}};

double sum_of_numbers(const Config& config) {
  double sum = 0;
  for (const auto& [key, domain] : every_domain) sum += config.number(key).value_or(0);
  return sum;
}

// Leads every number to an end of its domain. Study checks that each value is of it.
TEST(GaussianProcess, SuggestionsLieInTheSpaceForEveryDomain) {
  for (const double sign : {1.0, -1.0}) {
    Study study(every_domain, {.metric = minimize("loss"), .searcher = GaussianProcess{.n_startup_trials = 5}});
    for (int i = 0; i < 20; ++i) {
      const auto [trial, config] = *study.suggest();
      for (const auto& [key, domain] : every_domain)
        EXPECT_TRUE(contains(domain, config.at(key))) << key << " " << to_json(config.at(key));
      study.observe(trial, {{"loss", sign * sum_of_numbers(config)}});
    }
  }
}

TEST(GaussianProcess, ANumberWithoutBoundsStaysWithinItsDistribution) {
  const std::vector<double> losses = losses_of(GaussianProcess(), {{"x", randn(0, 1)}}, 20,
                                               [](const Config& config) { return config.get<double>("x"); });
  EXPECT_GT(best_of(losses), -3.8);
  EXPECT_LT(best_of(losses), -3.5) << "but goes to its end";
}

TEST(GaussianProcess, TheFirstSuggestionsAreALatinHypercube) {
  const Space space{{"x", uniform(0, 1)}, {"y", uniform(0, 1)}};
  const auto searcher = GaussianProcess{.n_startup_trials = 8}.make(setting_of(space));
  std::set<int> columns;
  std::set<int> rows;
  for (TrialIndex trial = 0; trial < 8; ++trial) {
    const Config config = *searcher->suggest(trial);
    columns.insert(static_cast<int>(8 * config.get<double>("x")));
    rows.insert(static_cast<int>(8 * config.get<double>("y")));
  }
  EXPECT_EQ(columns.size(), 8U);
  EXPECT_EQ(rows.size(), 8U);
  EXPECT_NE(searcher->suggest(0), searcher->suggest(8)) << "later ones are in another hypercube";
}

// ---- Optima

double bowl(const Config& config) {
  double sum = 0;
  for (const char* key : {"a", "b", "c", "d"}) sum += std::pow(config.get<double>(key) - 0.3, 2);
  return sum;
}

const Space four_numbers{{"a", uniform(0, 1)}, {"b", uniform(0, 1)}, {"c", uniform(0, 1)}, {"d", uniform(0, 1)}};

TEST(GaussianProcess, FindsTheMinimumOfABowlInThirtyTrials) {
  for (const bool deterministic : {false, true}) {
    const double best = best_of(losses_of(GaussianProcess{.deterministic = deterministic}, four_numbers, 30, &bowl));
    EXPECT_LT(best, 1e-3);
    EXPECT_LT(best, best_of(losses_of(RandomSearch(), four_numbers, 300, &bowl))) << "random search has ten times more";
  }
}

TEST(GaussianProcess, FindsTheMaximumIfTheModeSaysSo) {
  Study study({{"x", uniform(0, 1)}}, {.metric = maximize("score"), .searcher = GaussianProcess()});
  for (int i = 0; i < 20; ++i) {
    const auto [trial, config] = *study.suggest();
    study.observe(trial, {{"score", -std::pow(config.get<double>("x") - 0.3, 2)}});
  }
  EXPECT_NEAR(study.config(*study.best()).get<double>("x"), 0.3, 0.01);
}

TEST(GaussianProcess, NoiseDoesNotLeadItAway) {
  base::RandomStream noise(1, 0, base::Purpose::search_space);
  Study study({{"x", uniform(0, 1)}}, {.metric = minimize("loss"), .searcher = GaussianProcess()});
  double sum = 0;
  for (int i = 0; i < 50; ++i) {
    const auto [trial, config] = *study.suggest();
    const auto x = config.get<double>("x");
    study.observe(trial, {{"loss", 10 * std::pow(x - 0.3, 2) + 0.3 * noise.normal()}});
    if (i >= 30) sum += std::abs(x - 0.3);
  }
  EXPECT_LT(sum / 20, 0.15);
}

TEST(GaussianProcess, LearnsAboutParametersWithinTheOptionsOfAChoice) {
  const Space space{{"optimizer", choice({Space{{"name", "adam"}, {"lr", loguniform(1e-5, 1)}},
                                          Space{{"name", "sgd"}, {"lr", loguniform(1e-5, 1)}, {"m", uniform(0, 1)}}})},
                    {"layers", randint(1, 9)}};
  const auto loss_of = [](const Config& config) {
    const bool sgd = config.get<std::string>("optimizer/name") == "sgd";
    const double lr = std::log10(config.get<double>("optimizer/lr"));
    const double m = sgd ? config.get<double>("optimizer/m") : 0;
    return (sgd ? 0 : 0.2) + std::pow(lr - (sgd ? -1 : -3), 2) + std::pow(m - 0.8, 2) * (sgd ? 4 : 0) +
           0.1 * std::abs(config.get<double>("layers") - 3);
  };
  const double best = best_of(losses_of(GaussianProcess(), space, 50, loss_of));
  EXPECT_LT(best, 0.01);
  EXPECT_LT(best, best_of(losses_of(RandomSearch(), space, 500, loss_of)));
}

// Choices only: a repetition would be a waste.
TEST(GaussianProcess, TriesEveryConfigOfASmallSpaceOnceIfLossesHaveNoNoise) {
  const Space space{{"a", choice({1, 2, 3, 4})}, {"b", randint(0, 4)}};
  std::map<std::string, int> times;
  losses_of(GaussianProcess{.n_startup_trials = 4, .deterministic = true}, space, 12, [&](const Config& config) {
    ++times[to_json(Value(config.dict()))];
    return config.get<double>("a") * config.get<double>("b");
  });
  EXPECT_GE(times.size(), 11U) << "the Latin hypercube may repeat one";
}

// Suggestions of one model differ only by the random numbers of the search for its best point.
TEST(GaussianProcess, TrialsHaveTwoModelsInTurn) {
  const auto searcher = GaussianProcess{.deterministic = true}.make(setting_of({{"x", uniform(0, 1)}}));
  for (TrialIndex trial = 0; trial < 10; ++trial) {
    const double x = (static_cast<double>(trial) + 0.5) / 10;
    searcher->on_trial_add(trial, {{"x", x}});
    searcher->on_trial_end(trial, TrialStatus::terminated, {{"loss", std::pow(x - 0.3, 2) + 0.05 * std::sin(20 * x)}});
  }
  std::vector<double> suggested;
  for (TrialIndex trial = 10; trial < 16; ++trial) suggested.push_back(searcher->suggest(trial)->get<double>("x"));
  for (const std::size_t i : {0, 1, 2, 3}) {
    EXPECT_NEAR(suggested[i], suggested[i + 2], 1e-4) << i;
    EXPECT_GT(std::abs(suggested[i] - suggested[i + 1]), 1e-3) << i;
  }
}

// ---- Trials that end otherwise

// Random search fails in four of ten trials. The best is close to where trials fail.
TEST(GaussianProcess, KeepsAwayFromWhereTrialsFailAndWhereTheMetricIsNotFinite) {
  for (const double bad : {kNan, kInfinite, 0.0}) {
    Study study(four_numbers, {.metric = minimize("loss"), .searcher = GaussianProcess()});
    int failed = 0;
    for (int i = 0; i < 40; ++i) {
      const auto [trial, config] = *study.suggest();
      if (config.get<double>("a") <= 0.4) {
        study.observe(trial, {{"loss", bowl(config)}});
        continue;
      }
      failed += i >= 10 ? 1 : 0;
      if (bad == 0) {
        study.end(trial, TrialStatus::error);
      } else {
        study.observe(trial, {{"loss", bad}});
      }
    }
    EXPECT_LE(failed, 5) << bad;
    EXPECT_LT(*study.result(*study.best()).number("loss"), 0.01);
  }
}

// The stopped trials seem better than all others: their first losses mean nothing.
TEST(GaussianProcess, AStoppedTrialIsNotTheBest) {
  const Space space{{"x", uniform(0, 1)}};
  const auto searcher = GaussianProcess{.n_startup_trials = 4}.make(setting_of(space));
  for (TrialIndex trial = 0; trial < 12; ++trial) {
    const double x = (static_cast<double>(trial) + 0.5) / 12;
    searcher->on_trial_add(trial, {{"x", x}});
    if (x > 0.6) {
      searcher->on_trial_end(trial, TrialStatus::stopped, {{"loss", -100}});
    } else {
      searcher->on_trial_end(trial, TrialStatus::terminated, {{"loss", std::abs(x - 0.2)}});
    }
  }
  EXPECT_NEAR(searcher->suggest(12)->get<double>("x"), 0.2, 0.1);
}

TEST(GaussianProcess, ParallelTrialsDiffer) {
  const auto searcher = GaussianProcess().make(setting_of(four_numbers));
  TrialIndex trial = 0;
  for (; trial < 12; ++trial) {
    const Config config = *searcher->suggest(trial);
    searcher->on_trial_add(trial, config);
    searcher->on_trial_end(trial, TrialStatus::terminated, {{"loss", bowl(config)}});
  }
  std::vector<Config> open;
  for (; trial < 20; ++trial) {
    open.push_back(*searcher->suggest(trial));
    searcher->on_trial_add(trial, open.back());
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      double distance = 0;
      for (const char* key : {"a", "b", "c", "d"})
        distance += std::abs(open[i].get<double>(key) - open[j].get<double>(key));
      EXPECT_GT(distance, 0.01) << i << " and " << j;
    }
  }
}

// ---- Constraints

TEST(GaussianProcess, FindsTheBestConfigThatKeepsConstraints) {
  const Space space{{"x", uniform(0, 1)}, {"y", uniform(0, 1)}};
  const GaussianProcess searcher{.deterministic = true, .constraints = {{"cost", 1.2}, {"memory", -0.1}}};
  Study study(space, {.metric = minimize("loss"), .searcher = searcher});
  double best = kInfinite;
  for (int i = 0; i < 40; ++i) {
    const auto [trial, config] = *study.suggest();
    const auto x = config.get<double>("x");
    const auto y = config.get<double>("y");
    const double loss = -x - y;  // the best is 1.2, at the edge
    study.observe(trial, {{"loss", loss}, {"cost", x + y}, {"memory", -y}});
    if (x + y <= 1.2 && y >= 0.1) best = std::min(best, loss);
  }
  EXPECT_LT(best, -1.19);
}

TEST(GaussianProcess, LooksForAConfigThatKeepsConstraintsWhereNoneIsKnown) {
  const GaussianProcess searcher{.constraints = {{"cost", 0.05}}};
  Study study(four_numbers, {.metric = minimize("loss"), .searcher = searcher});
  int kept = 0;
  for (int i = 0; i < 40; ++i) {
    const auto [trial, config] = *study.suggest();
    const double cost = bowl(config);
    kept += cost <= 0.05 ? 1 : 0;
    Metrics result{{"loss", -config.get<double>("a")}};
    if (i != 1) result.set("cost", i == 2 ? kNan : cost);  // missing, or not a number
    study.observe(trial, result);
  }
  EXPECT_GE(kept, 10);
}

TEST(GaussianProcess, SuggestsAlsoIfAllTrialsHaveFailed) {
  const auto searcher = GaussianProcess{.constraints = {{"cost", 1}}}.make(setting_of(every_domain));
  const Parameters parameters(every_domain);
  for (TrialIndex trial = 0; trial < 45; ++trial) {
    const Config config = *searcher->suggest(trial);
    ASSERT_TRUE(parameters.point_of(config));
    searcher->on_trial_add(trial, config);
    searcher->on_trial_end(trial, TrialStatus::error, {});
  }
  // One has a result, but is not yet among those that hyper-parameters are fitted to.
  searcher->on_trial_add(45, *searcher->suggest(45));
  searcher->on_trial_end(45, TrialStatus::terminated, {{"loss", 1}, {"cost", 2}});
  EXPECT_TRUE(parameters.point_of(*searcher->suggest(46)));
}

// The loss that is expected of an open trial is nothing to improve on as long as no trial has kept the limits.
TEST(GaussianProcess, ParallelTrialsAlsoLookForAConfigThatKeepsConstraints) {
  const GaussianProcess searcher{.deterministic = true, .constraints = {{"cost", 0.02}}};
  int first_kept = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    Study study(four_numbers, {.metric = minimize("loss"), .searcher = searcher, .seed = seed});
    for (bool kept = false; !kept; ++first_kept) {
      while (study.open_trials().size() < 4) study.suggest();
      const TrialIndex trial = study.open_trials().front();
      const double cost = bowl(study.config(trial));
      study.observe(trial, {{"loss", -study.config(trial).get<double>("a")}, {"cost", cost}});
      kept = cost <= 0.02 || study.num_trials() > 100;
    }
  }
  EXPECT_LE(first_kept, 4 * 25);
}

// ---- Restore

// Feeds a searcher with trials, of which some fail, are stopped, have NaN or stay open, and end in another order.
class History {
 public:
  History(GaussianProcess options, Space space) : options_(std::move(options)), setting_(setting_of(space, 7)) {
    searcher_ = options_.make(setting_);
  }

  Config add() {
    const auto trial = static_cast<TrialIndex>(configs_.size());
    configs_.push_back(*searcher_->suggest(trial));
    searcher_->on_trial_add(trial, configs_.back());
    return configs_.back();
  }
  void end(TrialIndex trial, TrialStatus status, Metrics result) {
    searcher_->on_trial_end(trial, status, result);
    ends_[trial] = {status, std::move(result)};
  }
  // A failed trial runs again.
  void again(TrialIndex trial) {
    searcher_->on_trial_add(trial, configs_[static_cast<std::size_t>(trial)]);
    ends_.erase(trial);
  }
  Config next() const { return *searcher_->suggest(static_cast<TrialIndex>(configs_.size())); }
  // Returns the next suggestion of a searcher that was restored.
  Config next_after_restore() const {
    const auto restored = options_.make(setting_);
    for (std::size_t trial = 0; trial < configs_.size(); ++trial)
      restored->on_trial_add(static_cast<TrialIndex>(trial), configs_[trial]);
    for (const auto& [trial, end] : ends_) restored->on_trial_end(trial, end.first, end.second);
    if (const Value state = searcher_->save(); !state.is_null()) restored->load(state);
    return *restored->suggest(static_cast<TrialIndex>(configs_.size()));
  }

 private:
  GaussianProcess options_;
  SearcherSetting setting_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<Config> configs_ = {};
  std::map<TrialIndex, std::pair<TrialStatus, Metrics>> ends_ = {};
};

Metrics result_of(TrialIndex trial, const Config& config) {
  const double loss = trial % 7 == 3 ? kNan : sum_of_numbers(config);
  return {{"loss", loss}, {"cost", config.get<double>("uniform")}};
}

TEST(GaussianProcess, ARestoredSearcherSuggestsTheSameAtEveryMoment) {
  for (const bool deterministic : {false, true}) {
    History history(
        {.n_startup_trials = 5, .deterministic = deterministic, .max_observations = 20, .constraints = {{"cost", 1}}},
        every_domain);
    std::vector<Config> configs;
    for (TrialIndex trial = 0; trial < 36; ++trial) {
      configs.push_back(history.add());
      if (trial < 4) continue;
      const TrialIndex ends = trial % 2 == 0 ? trial - 2 : trial - 4;  // out of order
      if (ends % 11 == 5) continue;                                    // stays open
      const TrialStatus status = ends % 5 == 2   ? TrialStatus::error
                                 : ends % 5 == 4 ? TrialStatus::stopped
                                                 : TrialStatus::terminated;
      history.end(ends, status, result_of(ends, configs[static_cast<std::size_t>(ends)]));
      if (ends == 12) history.again(ends);
      ASSERT_EQ(history.next(), history.next_after_restore()) << "after trial " << trial;
    }
  }
}

TEST(GaussianProcess, ASuggestionLeavesNoTrace) {
  const auto asked = GaussianProcess{.n_startup_trials = 3}.make(setting_of(four_numbers));
  const auto other = GaussianProcess{.n_startup_trials = 3}.make(setting_of(four_numbers));
  for (TrialIndex trial = 0; trial < 8; ++trial) {
    const Config config = *asked->suggest(trial);
    asked->suggest(trial + 5);
    for (Searcher* one : {asked.get(), other.get()}) {
      one->on_trial_add(trial, config);
      one->on_trial_end(trial, TrialStatus::terminated, {{"loss", bowl(config)}});
    }
  }
  EXPECT_EQ(asked->suggest(8), other->suggest(8));
  EXPECT_NE(asked->suggest(8), asked->suggest(9)) << "the trial's own random numbers";
}

TEST(GaussianProcess, ConfigsThatAreNotOfTheSpaceAndTrialsWithoutTheMetricAreLeftOut) {
  const auto with = GaussianProcess{.n_startup_trials = 3}.make(setting_of(four_numbers));
  const auto without = GaussianProcess{.n_startup_trials = 3}.make(setting_of(four_numbers));
  with->on_trial_add(0, {{"a", 5}});
  with->on_trial_end(0, TrialStatus::terminated, {{"loss", 1}});
  with->on_trial_add(1, *with->suggest(1));
  with->on_trial_end(1, TrialStatus::terminated, {{"other", 1}});
  for (TrialIndex trial = 2; trial < 8; ++trial) {
    const Config config = *without->suggest(trial);
    for (Searcher* one : {with.get(), without.get()}) {
      one->on_trial_add(trial, config);
      one->on_trial_end(trial, TrialStatus::terminated, {{"loss", bowl(config)}});
    }
  }
  EXPECT_EQ(with->suggest(8), without->suggest(8));
}

TEST(GaussianProcess, WithMoreTrialsThanItsLimitItModelsTheBestAndTheLatest) {
  const std::vector<double> losses = losses_of(GaussianProcess{.max_observations = 12}, four_numbers, 60, &bowl);
  EXPECT_LT(best_of(losses), 0.01);
  EXPECT_LT(best_of(losses), best_of(losses_of(RandomSearch(), four_numbers, 600, &bowl)));
}

// ---- Options

TEST(GaussianProcess, BadOptionsAreNamed) {
  const auto fault = [](GaussianProcess searcher) {
    TunerOptions options{.param_space = four_numbers,
                         .tune_config = {.metric = minimize("loss"), .searcher = std::move(searcher)}};
    return message_of<InvalidArgument>([&] { check_options({}, options); });
  };
  EXPECT_THAT(fault({.n_startup_trials = 0}),
              HasSubstr("searcher (GaussianProcess) n_startup_trials: it is 0; it must be from 1 to 100,000"));
  EXPECT_THAT(fault({.max_observations = 9}),
              HasSubstr("searcher (GaussianProcess) max_observations: it is 9; it must be from 10 to 10,000"));
  EXPECT_THAT(fault({.constraints = {{"", 1}}}), HasSubstr("(GaussianProcess) constraints[0]: it has no metric"));
  EXPECT_THAT(fault({.constraints = {{"a", 1}, {"b", kNan}}}),
              HasSubstr("(GaussianProcess) constraints[1]: its at_most is nan; it must be a finite number"));
}

}  // namespace
}  // namespace cadre::tune
