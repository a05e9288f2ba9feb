#include "cadre/tune/searchers/tpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune/study.h"
#include "support/message_of.h"
#include "tune/options/options.h"
#include "tune/searchers/density_ratio.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Space mixed_space() {
  return {{"x", uniform(-1, 1)},
          {"quantized", quniform(0, 1, 0.1)},
          {"log", loguniform(1e-5, 1)},
          {"normal", randn(0, 2)},
          {"rounded", qrandn(0, 2, 0.5)},
          {"n", randint(1, 9)},
          {"width", lograndint(8, 1025)},
          {"ordinal", ordinal({1, 2, 8})},
          {"activation", choice({"relu", "gelu", "tanh"})},
          {"optimizer", choice({Space{{"name", "adam"}, {"beta", uniform(0.5, 1)}},
                                Space{{"name", "sgd"}, {"momentum", uniform(0, 1)}, {"nesterov", choice({1, 2})}}})}};
}

double mixed_loss(const Config& config) {
  const Config optimizer(config.at("optimizer"));
  double loss = std::abs(config.get<double>("x") - 0.5) + std::abs(std::log10(config.get<double>("log")) + 3);
  loss += std::abs(config.get<double>("n") - 3) + std::abs(config.get<double>("normal") - 1);
  loss += config.get<std::string>("activation") == "gelu" ? 0 : 1;
  return loss + (optimizer.get<std::string>("name") == "sgd" ? std::abs(optimizer.get<double>("momentum") - 0.9) : 1);
}

// Calls a searcher as a Tuner does, and remembers the calls.
class Record {
 public:
  explicit Record(TPE options = {}, Space space = mixed_space())
      : options_(std::move(options)), setting_{.seed = 7, .space = std::move(space), .metric = minimize("loss")} {
    searcher_ = options_.make(setting_);
  }

  Config suggest() const { return searcher_->suggest(static_cast<TrialIndex>(trials_.size())).value(); }
  // Adds a trial; what a suggestion lacks is drawn.
  TrialIndex add() {
    const Parameters parameters(setting_.space);
    const auto trial = static_cast<TrialIndex>(trials_.size());
    Config config = suggest();
    if (config.dict().empty()) config = parameters.config_of(random_point(parameters, trial));
    return add(config);
  }
  TrialIndex add(const Config& config) {
    trials_.push_back({.config = config});
    searcher_->on_trial_add(static_cast<TrialIndex>(trials_.size() - 1), config);
    return static_cast<TrialIndex>(trials_.size() - 1);
  }
  void end(TrialIndex trial, const Metrics& result, TrialStatus status = TrialStatus::terminated) {
    trials_[trial].result = result;
    trials_[trial].status = status;
    searcher_->on_trial_end(trial, status, result);
  }
  const Config& config(TrialIndex trial) const { return trials_[trial].config; }
  const Searcher& searcher() const { return *searcher_; }

  // Returns the suggestion of a new searcher, for which the state is restored.
  Config suggest_after_restore() const {
    const std::unique_ptr<Searcher> again = options_.make(setting_);
    for (std::size_t i = 0; i < trials_.size(); ++i) again->on_trial_add(static_cast<TrialIndex>(i), trials_[i].config);
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      const Trial& trial = trials_[i];
      if (trial.status) again->on_trial_end(static_cast<TrialIndex>(i), *trial.status, trial.result);
    }
    again->load(searcher_->save());
    return again->suggest(static_cast<TrialIndex>(trials_.size())).value();
  }

 private:
  struct Trial {
    Config config = {};
    std::optional<TrialStatus> status = {};
    Metrics result = {};
  };

  static Point random_point(const Parameters& parameters, TrialIndex trial) {
    base::RandomStream random(7, trial, base::Purpose::search_space);
    Point point(parameters.size());
    for (double& coordinate : point) coordinate = random.uniform();
    return parameters.settled(point);
  }

  TPE options_;
  SearcherSetting setting_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<Trial> trials_ = {};
};

TEST(WeightsByAge, GrowToOneAndStayThereForTheLatest) {
  EXPECT_THAT(weights_by_age(25), Each(1.0));
  std::vector<double> expected(26, 1.0);
  expected[0] = 1.0 / 26;
  EXPECT_EQ(weights_by_age(26), expected);
  const std::vector<double> weights = weights_by_age(125);
  EXPECT_EQ(weights[0], 1.0 / 125);
  EXPECT_NEAR(weights[50], 1.0 / 125 + (1 - 1.0 / 125) * 50 / 99, 1e-12);
  EXPECT_THAT(std::vector(weights.begin() + 99, weights.end()), Each(1.0));
}

TEST(Tpe, SuggestionsLieInTheSpaceForEveryKindOfDomain) {
  for (const bool joint : {true, false}) {
    Record record({.n_startup_trials = 3, .multivariate = joint, .group = joint});
    const Parameters parameters(mixed_space());
    for (int i = 0; i < 60; ++i) {
      const TrialIndex trial = record.add();
      ASSERT_TRUE(parameters.point_of(record.config(trial))) << to_json(Value(record.config(trial).dict()));
      record.end(trial, {{"loss", mixed_loss(record.config(trial))}});
    }
  }
}

TEST(Tpe, ARestoreGivesTheSameSuggestions) {
  Record record({.n_startup_trials = 5});
  std::vector<TrialIndex> open;
  for (int i = 0; i < 60; ++i) {
    open.push_back(record.add());
    if (open.size() < 4) continue;
    // They end in another order than they began.
    const TrialIndex trial = open[static_cast<std::size_t>(i) % 3];
    std::erase(open, trial);
    const double loss = i % 7 == 0 ? kNotANumber : mixed_loss(record.config(trial));
    const TrialStatus status = i % 5 == 0   ? TrialStatus::error
                               : i % 4 == 0 ? TrialStatus::stopped
                                            : TrialStatus::terminated;
    record.end(trial, {{"loss", loss}, {"training_iteration", i % 3}}, status);
    ASSERT_EQ(record.suggest(), record.suggest_after_restore()) << "after step " << i;
    ASSERT_EQ(record.suggest(), record.suggest()) << "a suggestion leaves no trace";
  }
}

// The best of 60 trials, on average over seeds.
double mean_best(const AnySearcher& searcher, const Space& space, double (*function)(const Config&)) {
  double sum = 0;
  constexpr int kSeeds = 5;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Study study(space, {.metric = minimize("loss"), .searcher = searcher, .seed = seed});
    for (int i = 0; i < 60; ++i) {
      const auto [trial, config] = *study.suggest();
      study.observe(trial, {{"loss", function(config)}});
    }
    sum += study.result(*study.best()).number("loss").value();
  }
  return sum / kSeeds;
}

double bowl(const Config& config) {
  return std::pow(config.get<double>("x") - 0.3, 2) + std::pow(config.get<double>("y") + 0.4, 2);
}

TEST(Tpe, FindsTheOptimumBetterThanRandomSearch) {
  const Space square{{"x", uniform(-1, 1)}, {"y", uniform(-1, 1)}};
  EXPECT_LT(mean_best(TPE{}, square, &bowl), 0.1 * mean_best(RandomSearch{}, square, &bowl));
  EXPECT_LT(mean_best(TPE{}, mixed_space(), &mixed_loss), 0.6 * mean_best(RandomSearch{}, mixed_space(), &mixed_loss));
  const TPE independent{.multivariate = false};
  EXPECT_LT(mean_best(independent, mixed_space(), &mixed_loss), mean_best(RandomSearch{}, mixed_space(), &mixed_loss));
}

// ---- Good and bad trials. All have x; the suggestions lie where the good ones do.

Space line() { return {{"x", uniform(0, 1)}}; }

double x_of(const Config& config) { return config.get<double>("x"); }

// Adds pairs of trials, one on the left and one on the right side, and returns how many of 20 suggestions lie left.
int left_of_20(TPE options, const std::function<void(Record&, TrialIndex left, TrialIndex right)>& end_pair) {
  options.gamma = 0.5;
  Record record(options, line());
  for (int i = 0; i < 10; ++i) {
    const TrialIndex left = record.add(Config{{"x", 0.2 + 0.001 * i}});
    const TrialIndex right = record.add(Config{{"x", 0.8 + 0.001 * i}});
    end_pair(record, left, right);
  }
  int count = 0;
  for (TrialIndex trial = 100; trial < 120; ++trial) count += x_of(record.searcher().suggest(trial).value()) < 0.5;
  return count;
}

TEST(Tpe, SuggestsWhereGoodTrialsAre) {
  const auto minimum = [](Record& record, TrialIndex left, TrialIndex right) {
    record.end(left, {{"loss", 1}});
    record.end(right, {{"loss", 2}});
  };
  EXPECT_GE(left_of_20({}, minimum), 18);
  EXPECT_LE(left_of_20({.metrics = {maximize("loss")}}, minimum), 2) << "its metrics replace the setting's";
}

TEST(Tpe, FailedTrialsAndThoseWithNanAreNotGood) {
  EXPECT_GE(left_of_20({},
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 5}});
                         record.end(right, {{"loss", kNotANumber}});
                       }),
            18);
  EXPECT_GE(left_of_20({.n_startup_trials = 5},
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", left == 0 ? 4 : 5}});
                         record.end(right, {{"loss", 0}}, TrialStatus::error);
                       }),
            10)
      << "a failed trial counts for nothing";
}

TEST(Tpe, WhereAllTrialsDivergeItGoesElsewhere) {
  Record record({}, line());
  for (int i = 0; i < 20; ++i) record.end(record.add(Config{{"x", 0.04 * i}}), {{"loss", kNotANumber}});
  std::vector<double> suggested;
  for (TrialIndex trial = 100; trial < 120; ++trial) suggested.push_back(x_of(*record.searcher().suggest(trial)));
  EXPECT_THAT(suggested, Each(Gt(0.8)));
}

TEST(Tpe, StoppedTrialsAreWorseThanCompleteOnesAndBetterWithMoreIterations) {
  EXPECT_GE(left_of_20({},
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 5}});
                         record.end(right, {{"loss", 0}, {"training_iteration", 9}}, TrialStatus::stopped);
                       }),
            18);
  EXPECT_GE(left_of_20({},
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 5}, {"training_iteration", 3}}, TrialStatus::stopped);
                         record.end(right, {{"loss", 0}, {"training_iteration", 1}}, TrialStatus::stopped);
                       }),
            18);
  EXPECT_GE(left_of_20({},
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 0}, {"training_iteration", 1}}, TrialStatus::stopped);
                         record.end(right, {{"loss", 5}, {"training_iteration", 1}}, TrialStatus::stopped);
                       }),
            18);
}

TEST(Tpe, TrialsThatKeepConstraintsAreBetter) {
  const TPE options{.constraints = {{"latency", 10}}};
  EXPECT_GE(left_of_20(options,
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 5}, {"latency", 10}});
                         record.end(right, {{"loss", 0}, {"latency", 10.1}});
                       }),
            18);
  EXPECT_GE(left_of_20(options,
                       [](Record& record, TrialIndex left, TrialIndex right) {
                         record.end(left, {{"loss", 5}, {"latency", 11}});
                         record.end(right, {{"loss", 0}, {"latency", 12}});
                       }),
            18)
      << "smaller violations are better";
}

TEST(Tpe, OpenTrialsKeepOthersAwayUnlessThereIsNoConstantLiar) {
  // Both sides are good, and trials are open on the left one.
  const auto left_of_20 = [](bool liar) {
    Record record({.gamma = 0.5, .constant_liar = liar}, line());
    for (int i = 0; i < 10; ++i) {
      record.end(record.add(Config{{"x", (i % 2 == 0 ? 0.2 : 0.8) + 0.001 * i}}), {{"loss", 1}});
      record.end(record.add(Config{{"x", 0.44 + 0.02 * i}}), {{"loss", 2}});
    }
    for (int i = 0; i < 8; ++i) record.add(Config{{"x", 0.17 + 0.01 * i}});
    int count = 0;
    for (TrialIndex trial = 100; trial < 120; ++trial) count += x_of(*record.searcher().suggest(trial)) < 0.5;
    return count;
  };
  EXPECT_LE(left_of_20(true), 3);
  EXPECT_GE(left_of_20(false), 12);
}

TEST(Tpe, SeveralMetricsFindTheFront) {
  // Both losses are smallest for y = 0, where x moves along the front.
  const Space space{{"x", uniform(0, 1)}, {"y", uniform(0, 1)}};
  Record record({.metrics = {minimize("first"), maximize("second")}}, space);
  double late_y = 0;
  double smallest_x = 1;
  double largest_x = 0;
  for (int i = 0; i < 100; ++i) {
    const TrialIndex trial = record.add();
    const auto x = record.config(trial).get<double>("x");
    const auto y = record.config(trial).get<double>("y");
    record.end(trial, {{"first", x + y}, {"second", x - 1 - y}});
    if (i < 60) continue;
    late_y += y / 40;
    smallest_x = std::min(smallest_x, x);
    largest_x = std::max(largest_x, x);
  }
  EXPECT_LT(late_y, 0.2);
  EXPECT_LT(smallest_x, 0.2);
  EXPECT_GT(largest_x, 0.8);
}

TEST(Tpe, AParameterLearnsFromTheTrialsThatHaveIt) {
  const Space space{{"c", choice({Space{{"a", uniform(0, 1)}}, Space{{"b", uniform(0, 1)}}})}};
  Record record({.n_startup_trials = 5}, space);
  for (int i = 0; i < 30; ++i) {
    const TrialIndex trial = record.add();
    const Config chosen(record.config(trial).at("c"));
    record.end(trial, {{"loss", chosen.contains("a") ? 5 : std::abs(chosen.get<double>("b") - 0.7)}});
  }
  int with_b = 0;
  for (TrialIndex trial = 100; trial < 120; ++trial) {
    const Config config = record.searcher().suggest(trial).value();
    const Config chosen(config.at("c"));
    if (!chosen.contains("b")) continue;
    ++with_b;
    EXPECT_NEAR(chosen.get<double>("b"), 0.7, 0.25);
  }
  EXPECT_GE(with_b, 12);
}

// ---- Options

TEST(Tpe, BadOptionsAreNamed) {
  const auto fault = [](TPE searcher) {
    return message_of<InvalidArgument>(
        [&] { Study(line(), {.metric = minimize("loss"), .searcher = std::move(searcher)}); });
  };
  EXPECT_THAT(fault({.n_startup_trials = -1}), HasSubstr("(TPE) n_startup_trials: it is -1; it must be 0 or more"));
  EXPECT_THAT(fault({.n_ei_candidates = 0}), HasSubstr("(TPE) n_ei_candidates: it is 0; it must be from 1 to 100000"));
  EXPECT_THAT(fault({.gamma = 1}), HasSubstr("(TPE) gamma: it is 1; it must be above 0 and below 1"));
  EXPECT_THAT(fault({.max_good_trials = 0}), HasSubstr("(TPE) max_good_trials: it is 0; it must be 1 or more"));
  EXPECT_THAT(fault({.prior_weight = 0}), HasSubstr("(TPE) prior_weight: it is 0; it must be above 0"));
  EXPECT_THAT(fault({.metrics = {"loss"}}), HasSubstr("(TPE) metrics: \"loss\" has no direction"));
  EXPECT_THAT(fault({.metrics = {minimize("")}}), HasSubstr("(TPE) metrics: one of them has no name"));
  EXPECT_THAT(fault({.metrics = {minimize("a"), maximize("a")}}), HasSubstr("(TPE) metrics: \"a\" is there twice"));
  EXPECT_THAT(fault({.constraints = {{"", 1}}}), HasSubstr("(TPE) constraints[0]: it has no metric"));
  EXPECT_THAT(fault({.constraints = {{"a", kNotANumber}}}), HasSubstr("(TPE) constraints[0]: its at_most is nan"));
}

TEST(Tpe, IsStoredAndReadBack) {
  const TPE options{.n_startup_trials = 3,
                    .gamma = 0.2,
                    .group = false,
                    .metrics = {minimize("a"), maximize("b")},
                    .constraints = {{"c", 4}}};
  AnySearcher read;
  const Value stored = to_stored(AnySearcher(options));
  read_stored(read, Stored(stored));
  const auto& again = read.get<TPE>();
  EXPECT_EQ(again.n_startup_trials, 3);
  EXPECT_EQ(again.gamma, 0.2);
  EXPECT_FALSE(again.group);
  EXPECT_EQ(again.metrics, options.metrics);
  EXPECT_EQ(again.constraints, options.constraints);
}

}  // namespace
}  // namespace cadre::tune
