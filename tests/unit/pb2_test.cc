#include "cadre/tune/schedulers/pb2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/json.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/options/options.h"
#include "tune/schedulers/time_varying_kernel.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;
using test_support::Driver;
using test_support::message_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

PB2 every_two() {
  return {.time_attr = "training_iteration",
          .metric = "score",
          .mode = Mode::max,
          .perturbation_interval = 2,
          .hyperparam_bounds = {{"lr", uniform(0.1, 1)}}};
}

TunerOptions with(const AnyScheduler& scheduler, std::int64_t trials, Space space = {{"lr", uniform(0.1, 1)}}) {
  return {.param_space = std::move(space), .tune_config = {.num_samples = trials, .scheduler = scheduler, .seed = 3}};
}

Metrics at(std::int64_t iteration, double score) { return {{"training_iteration", iteration}, {"score", score}}; }

std::string said(const Driver& driver) {
  std::string text;
  for (const Say* say : driver.all<Say>()) text += say->text + "\n";
  return text;
}

// ---- The kernel

TrainingData four_results() {
  TrainingData data{.points = Eigen::MatrixXd(4, 3), .values = VectorXd(4)};
  data.points << 0, 0.1, 0.2, 1, 0.4, 0.9, 2, 0.8, 0.3, 5, 0.95, 0.1;
  data.values << 0.5, -1.2, 0.3, 1.1;
  return data;
}

Hyperparameters some_hyperparameters() { return {.kernel = Eigen::Vector3d(0.7, -2, 0.2), .log_noise = -3}; }

// Reference: numpy, v * exp(-w * d2 / 2) * (1 - epsilon) ** (|t - t'| / 2).
TEST(TimeVaryingKernel, CovariancesAreThoseOfTheReference) {
  const TimeVaryingKernel kernel;
  const Hyperparameters some = some_hyperparameters();
  const double epsilon = TimeVaryingKernel::epsilon(some.kernel);
  EXPECT_NEAR(epsilon, 1 - std::exp(-2 * std::exp(-2.0)), 1e-15);
  EXPECT_NEAR(TimeVaryingKernel::length_scale(some.kernel), std::exp(-0.35), 1e-15);
  const VectorXd covariances = kernel.covariances(four_results().points, Eigen::RowVector3d(3, 0.5, 0.5), some.kernel);
  for (Index i = 0; i < 4; ++i) {
    const RowVectorXd row = four_results().points.row(i);
    const double distance = std::pow(row[1] - 0.5, 2) + std::pow(row[2] - 0.5, 2);
    EXPECT_NEAR(
        covariances[i],
        std::exp(0.2) * std::exp(-std::exp(0.7) * distance / 2) * std::pow(1 - epsilon, std::abs(row[0] - 3) / 2),
        1e-12);
  }
}

TEST(TimeVaryingKernel, GradientsAreThoseOfDifferences) {
  constexpr double kStep = 1e-5;
  const auto kernel = std::make_shared<TimeVaryingKernel>();
  VectorXd gradient;
  VectorXd ignored;
  log_posterior_density(*kernel, four_results(), some_hyperparameters(), gradient);
  for (Index i = 0; i < 4; ++i) {
    double ends[2];
    for (const int side : {0, 1}) {
      Hyperparameters moved = some_hyperparameters();
      (i < 3 ? moved.kernel[i] : moved.log_noise) += (2 * side - 1) * kStep;
      ends[side] = log_posterior_density(*kernel, four_results(), moved, ignored);
    }
    EXPECT_NEAR(gradient[i], (ends[1] - ends[0]) / (2 * kStep), 1e-7) << i;
  }
  const GaussianProcessModel model(kernel, four_results(), some_hyperparameters());
  const RowVectorXd point = Eigen::RowVector3d(6, 0.3, 0.6);
  const RowVectorXd of_mean = model.gradient(point, model.posterior(point), 1, 0);
  EXPECT_EQ(of_mean[0], 0);
  for (const Index i : {1, 2}) {
    RowVectorXd before = point;
    RowVectorXd after = point;
    before[i] -= kStep;
    after[i] += kStep;
    EXPECT_NEAR(of_mean[i], (model.posterior(after).mean - model.posterior(before).mean) / (2 * kStep), 1e-7);
  }
}

// ---- Decisions

TEST(PB2, BeforeAScoreHasGrownHyperparametersAreDrawn) {
  Driver driver(with(every_two(), 4), 4);
  for (const TrialIndex trial : {0, 1, 2}) driver.report(trial, at(2, 1.0 + trial), ".reporting");
  EXPECT_THAT(driver.report(3, at(2, 0), ".reporting"), ElementsAre("exploit 3"));
  EXPECT_THAT(said(driver), AllOf(HasSubstr("[PB2] [Exploit] Cloning trial 00002"), HasSubstr("--- (resample) -->")));
  EXPECT_THAT(driver.trial(3).config.get<double>("lr"), AllOf(Ge(0.1), Le(1.0)));
  EXPECT_EQ(driver.experiment().scheduler_state(), "PB2: 1 exploits");
}

// Lets trials report at the first interval, when nothing differs, and at the second one, by which scores have grown by
// their learning rate. Returns the config of the worst trial then.
Config after_growth_by(double slope, const TunerOptions& options) {
  Driver driver(options, 4);
  for (const TrialIndex trial : {0, 1, 2, 3}) driver.report(trial, at(2, 0), ".reporting");
  std::vector<TrialIndex> order{0, 1, 2, 3};
  const auto growth = [&](TrialIndex trial) { return slope * driver.trial(trial).config.get<double>("lr"); };
  std::ranges::sort(order, std::ranges::greater(), growth);
  for (const TrialIndex trial : order) driver.report(trial, at(4, growth(trial)), ".reporting");
  EXPECT_THAT(said(driver), HasSubstr(" by 4 results (length scale ")) << said(driver);
  EXPECT_THAT(said(driver), HasSubstr("--- (bandit) -->"));
  return driver.trial(order.back()).config;
}

TEST(PB2, ItMovesToWhereScoresGrow) {
  EXPECT_GT(after_growth_by(1, with(every_two(), 4)).get<double>("lr"), 0.9);
  EXPECT_LT(after_growth_by(-1, with(every_two(), 4)).get<double>("lr"), 0.2);
}

TEST(PB2, IntegersAndLogarithmsStaySuch) {
  PB2 scheduler = every_two();
  scheduler.hyperparam_bounds = {
      {"lr", loguniform(1e-6, 1)}, {"layers", randint(1, 9)}, {"model", {{"width", qrandint(8, 64, 8)}}}};
  const Space space{{"lr", loguniform(1e-6, 1)},
                    {"layers", randint(1, 9)},
                    {"model", {{"width", qrandint(8, 64, 8)}, {"act", "relu"}}}};
  const Config config = after_growth_by(1, with(scheduler, 4, space));
  EXPECT_GT(config.get<double>("lr"), 0.3);
  EXPECT_TRUE(config.at("layers").is_integer());
  EXPECT_EQ(config.get<std::int64_t>("model/width") % 8, 0);
  EXPECT_EQ(config.get<std::string>("model/act"), "relu");
}

// All of them continue at the same time and score.
TEST(PB2, HyperparametersChosenAtOnceDiffer) {
  PB2 scheduler = every_two();
  scheduler.synch = true;
  scheduler.quantile_fraction = 0.5;
  Driver driver(with(scheduler, 8), 8);
  for (TrialIndex trial = 0; trial < 8; ++trial) driver.report(trial, at(2, 0), ".reporting");
  for (TrialIndex trial = 0; trial < 8; ++trial) driver.report(trial, at(4, trial < 4 ? -1 : 1), ".reporting");
  std::vector<double> chosen;
  for (const LogExploit* exploit : driver.all<LogExploit>()) chosen.push_back(exploit->new_config.get<double>("lr"));
  ASSERT_EQ(chosen.size(), 4u);
  std::ranges::sort(chosen);
  for (std::size_t i = 1; i < chosen.size(); ++i) EXPECT_GT(chosen[i] - chosen[i - 1], 0.01);
}

TEST(PB2, FromAScoreThatIsNotFiniteHyperparametersAreDrawn) {
  Driver driver(with(every_two(), 2), 2);
  driver.report(0, at(2, 1), ".reporting_1");
  EXPECT_THAT(driver.report(1, at(2, 0), ".reporting_1"), ElementsAre("exploit 1"));
  driver.feed(FunctionReturned{1, 1});
  driver.report(0, at(4, 2), ".reporting_2");
  driver.report(0, at(6, std::numeric_limits<double>::infinity()), ".reporting_3");
  EXPECT_THAT(driver.report(1, at(4, 0), ".reporting_2"), ElementsAre("exploit 1"));
  EXPECT_THAT(said(driver), HasSubstr("--- (resample) -->"));
}

TEST(PB2, ARestoredStateDecidesTheSame) {
  const TunerOptions options = with(every_two(), 4);
  Driver first(options, 4);
  for (TrialIndex trial = 0; trial < 3; ++trial) first.report(trial, at(2, 0), ".reporting");
  for (TrialIndex trial = 0; trial < 3; ++trial) first.report(trial, at(4, trial), ".reporting");
  Experiment again(Trainable("f"), options);
  again.load(base::parse_json(base::to_json(first.experiment().save().dict()), "the state"),
             [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  EXPECT_EQ(to_json(again.save()), to_json(first.experiment().save()));
  const Trial& last = first.trial(3);
  const ResultReported event{3, last.attempt, {last.step + 1, at(4, -1), ".reporting"}};
  first.feed(event);
  Actions actions;
  again.handle(event, actions);
  EXPECT_EQ(again.trials().at(3).config, first.trial(3).config);
  EXPECT_THAT(said(first), HasSubstr(" by 3 results (length scale "));
}

// ---- A best hyper-parameter that drifts

// Trains trials that save after every step until all have made `steps`; returns the best score. `growth`: of the score
// in a step.
double trained(const TunerOptions& options, std::int64_t steps,
               const std::function<double(const Config&, std::int64_t)>& growth) {
  struct State {
    std::int64_t step = 0;
    double score = 0;
  };
  const auto trials = static_cast<std::size_t>(options.tune_config.num_samples);
  std::vector<State> states(trials);
  Driver driver(options, static_cast<double>(trials));
  while (std::ranges::min(states, {}, &State::step).step < steps) {
    for (TrialIndex trial = 0; trial < trials; ++trial) {
      State& state = states[trial];
      if (state.step == steps) continue;
      state.score += growth(driver.trial(trial).config, state.step++);
      driver.report(trial, at(state.step, state.score), ".reporting");
      if (driver.all<LogExploit>().empty()) continue;
      state = states[driver.all<LogExploit>()[0]->donor];
      driver.feed(FunctionReturned{trial, driver.trial(trial).attempt});
    }
  }
  return std::ranges::max(states, {}, &State::score).score;
}

constexpr std::int64_t kDriftSteps = 60;

// The best pair of values goes once around a circle during the training.
double growth_near_a_drifting_best(const Config& config, std::int64_t step) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(step) / kDriftSteps;
  const double a = config.get<double>("a") - (0.5 + 0.3 * std::cos(angle));
  const double b = config.get<double>("b") - (0.5 + 0.3 * std::sin(angle));
  return std::exp(-8 * (a * a + b * b));
}

// Takes the median of 20 seeds: single runs differ by much.
TEST(PB2, FourTrialsFollowADriftBetterThanUnderPopulationBasedTraining) {
  const Mutations bounds{{"a", uniform(0, 1)}, {"b", uniform(0, 1)}};
  const PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                    .metric = "score",
                                    .mode = Mode::max,
                                    .perturbation_interval = 2,
                                    .hyperparam_mutations = bounds};
  PB2 bandits = every_two();
  bandits.hyperparam_bounds = bounds;
  std::vector<double> gains;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TunerOptions options = with(bandits, 4, {{"a", uniform(0, 1)}, {"b", uniform(0, 1)}});
    options.tune_config.seed = seed;
    const double with_bandits = trained(options, kDriftSteps, growth_near_a_drifting_best);
    options.tune_config.scheduler = pbt;
    gains.push_back(with_bandits - trained(options, kDriftSteps, growth_near_a_drifting_best));
  }
  std::ranges::sort(gains);
  const double median = (gains[9] + gains[10]) / 2;
  RecordProperty("median_gain", std::to_string(median));  // in the XML report
  EXPECT_GT(median, 3) << "of 60, the most that is possible";
}

// ---- Checks

TEST(PB2, BadOptionsAreNamed) {
  const auto faults = [](const std::function<void(PB2&, TunerOptions&)>& change) {
    PB2 scheduler = every_two();
    TunerOptions options = with(scheduler, 4,
                                {{"lr", uniform(0, 1)},
                                 {"opt", choice({"sgd", Space{{"beta", uniform(0, 1)}}})},
                                 {"model", {{"width", randint(1, 9)}}}});
    change(scheduler, options);
    options.tune_config.scheduler = scheduler;
    std::vector<std::string> notes;
    return message_of<InvalidArgument>([&] { check_options(Trainable("f"), resolve(Trainable("f"), options, notes)); });
  };
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.perturbation_interval = 0; }),
              HasSubstr("scheduler (PB2) perturbation_interval: it is 0; it must be above 0"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.quantile_fraction = 0.6; }), HasSubstr("must be from 0 to 0.5"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {}; }),
              HasSubstr("hyperparam_bounds: name at least one"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {{"lrr", uniform(0, 1)}}; }),
              HasSubstr("hyperparam_bounds \"lrr\": param_space has no such key"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {{"lr", {0.1, 0.2}}}; }),
              HasSubstr("hyperparam_bounds \"lr\": PB2 models numbers between bounds"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {{"lr", randn()}}; }),
              HasSubstr("PB2 models numbers between bounds"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {{"lr", loguniform(0, 1)}}; }),
              HasSubstr("hyperparam_bounds \"lr\": "));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) { pb2.hyperparam_bounds = {{"opt", {{"beta", uniform(0, 1)}}}}; }),
              HasSubstr("hyperparam_bounds \"opt\": its keys are not in every config"));
  EXPECT_THAT(faults([](PB2& pb2, TunerOptions&) {
                pb2.metric = {};
                pb2.mode = {};
              }),
              HasSubstr("metric"));
  EXPECT_THAT(faults([](PB2&, TunerOptions& options) {
                options.tune_config.metric = maximize("score");
                options.tune_config.searcher = TPE{};
              }),
              HasSubstr("the scheduler PB2 changes configs during training"));
}

TEST(PB2, ReversedBoundsAreSwappedWithANote) {
  PB2 scheduler = every_two();
  scheduler.hyperparam_bounds = {{"lr", uniform(1, 0.1)}, {"model", {{"width", randint(9, 1)}}}};
  std::vector<std::string> notes;
  const TunerOptions complete = resolve(
      Trainable("f"), with(scheduler, 4, {{"lr", uniform(0.1, 1)}, {"model", {{"width", randint(1, 9)}}}}), notes);
  EXPECT_THAT(notes, Contains(HasSubstr("hyperparam_bounds \"lr\": uniform(1.0, 0.1)")));
  EXPECT_THAT(notes, Contains(HasSubstr("hyperparam_bounds \"model\" > \"width\"")));
}

}  // namespace
}  // namespace cadre::tune
