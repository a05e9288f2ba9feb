// tests/compat/regret_bound_test.py compares bounds and decisions with Optuna's.
#include "cadre/tune/stoppers/regret_bound_terminator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cadre/tune.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/options/options.h"
#include "tune/stoppers/regret_bound.h"

namespace cadre::tune {
namespace {

using test_support::Driver;
using test_support::message_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Space kSpace{{"x", uniform(0, 1)}, {"optimizer", choice({"sgd", Space{{"beta", uniform(0, 1)}}})}};

TunerOptions ended_by(RegretBoundTerminator stopper, std::int64_t trials = 30) {
  TunerOptions options{.param_space = kSpace,
                       .tune_config = {.metric = minimize("loss"), .num_samples = trials, .seed = 3},
                       .run_config = {.stop = std::move(stopper)}};
  std::vector<std::string> notes;
  return resolve(Trainable("f"), std::move(options), notes);
}

void train_for_regret_bound(const Config&) {}

double loss_of(const Config& config) { return std::pow(config.get<double>("x") - 0.3, 2); }

// Ends trials one after another until all stop or nothing is left; `end` ends one. Returns how many have ended.
int run(Driver& driver, const std::function<std::vector<std::string>(TrialIndex)>& end) {
  int ended = 0;
  while (!driver.experiment().live_trials().empty() && driver.experiment().trials_to_come() > 0) {
    const auto trial = *driver.experiment().live_trials().begin();
    const std::vector<std::string> decided = end(trial);
    ++ended;
    if (std::ranges::find(decided, "stop_all " + std::to_string(trial)) != decided.end()) break;
  }
  return ended;
}
std::vector<std::string> end_with_a_result(Driver& driver, TrialIndex trial) {
  driver.report(trial, {{"loss", loss_of(driver.trial(trial).config)}});
  return driver.feed(FunctionReturned{trial, 1});
}

TEST(RegretBoundTerminator, EndsTheExperimentOnceTheRegretIsSmall) {
  Driver driver(ended_by({.error = StaticError{0.5}}), 1);
  EXPECT_EQ(run(driver, [&](TrialIndex trial) { return end_with_a_result(driver, trial); }), 20);
  EXPECT_THAT(driver.all<Say>().back()->text, HasSubstr("All trials stop: the regret of the best trial is at most "));
  EXPECT_THAT(driver.all<Say>().back()->text, HasSubstr(", below the error of an evaluation, 0.5"));
  EXPECT_EQ(driver.experiment().trials_to_come(), 0);
}

TEST(RegretBoundTerminator, GoesOnWhileTheRegretIsLarge) {
  Driver driver(ended_by({.error = StaticError{1e-9}}), 1);
  EXPECT_EQ(run(driver, [&](TrialIndex trial) { return end_with_a_result(driver, trial); }), 29);
}

TEST(RegretBoundTerminator, OnlyTrialsThatTerminatedWithAFiniteValueCount) {
  Driver driver(ended_by({.error = StaticError{0.5}, .min_n_trials = 3}), 1);
  const int ended = run(driver, [&](TrialIndex trial) {
    if (trial == 0) {
      driver.report(trial, {{"loss", 0.5}});
      return driver.feed(FunctionThrew{trial, 1, "no"});
    }
    if (trial == 1) driver.report(trial, {{"loss", std::nan("")}});
    if (trial == 2) driver.report(trial, {{"other", 1}});
    if (trial <= 2) return driver.feed(FunctionReturned{trial, 1});
    return end_with_a_result(driver, trial);
  });
  EXPECT_EQ(ended, 6);
}

TEST(RegretBoundTerminator, ATrialThatGoesOnAndEndsAgainCountsOnce) {
  const auto until = [](double max_t) { return ASHAScheduler{.metric = "loss", .mode = Mode::min, .max_t = max_t}; };
  TunerOptions options = ended_by({.error = StaticError{1e9}, .min_n_trials = 2}, 1);
  options.tune_config.scheduler = until(1);
  Driver driver(options, 1);
  const auto end = [&](TrialIndex trial, std::int64_t iteration, double loss) {
    return driver.report(trial, {{"training_iteration", iteration}, {"loss", loss}}, ".reporting");
  };
  EXPECT_THAT(end(0, 1, 0.5), ElementsAre("end 0"));
  test_support::unwind(driver, 0);
  driver.feed(ControllerStarted{.resources = {.cpus = 1}, .extension = {.num_samples = 5, .scheduler = until(2)}});
  EXPECT_THAT(end(0, 2, 0.4), ElementsAre("end 0"));
  test_support::unwind(driver, 0);
  EXPECT_THAT(end(1, 2, 0.3), Contains("stop_all 1"));
}

TEST(RegretBoundTerminator, ASnapshotHasWhatHasEnded) {
  const TunerOptions options = ended_by({.error = StaticError{0.5}, .min_n_trials = 8});
  Driver first(options, 1);
  for (TrialIndex trial = 0; trial < 7; ++trial)
    EXPECT_THAT(end_with_a_result(first, trial), Not(Contains("stop_all")));
  Experiment again = first.experiment().anew();
  again.load(first.experiment().save(), [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  Actions actions;
  again.handle(ResultReported{7, 1, {1, {{"loss", loss_of(first.trial(7).config)}}, {}}}, actions);
  again.handle(FunctionReturned{7, 1}, actions);
  end_with_a_result(first, 7);
  EXPECT_EQ(again.trials_to_come(), 0);
  EXPECT_EQ(first.experiment().trials_to_come(), 0);
  EXPECT_EQ(to_json(again.save()), to_json(first.experiment().save()));
}

TEST(RegretBound, EqualLossesLeaveNoRegret) {
  const Parameters parameters(kSpace);
  const RegretBoundEvaluator evaluator(parameters, 0.5, 20, 1);
  std::vector<EvaluatedPoint> evaluations;
  for (int i = 0; i < 30; ++i) evaluations.push_back({parameters.settled({i % 2 * 0.5, i / 30.0, i / 30.0}), 7});
  EXPECT_LT(evaluator(evaluations).bound, 1e-8);
}

TEST(RegretBound, ModelsTheBestAndAtMostSoMany) {
  const Parameters parameters(kSpace);
  std::vector<EvaluatedPoint> evaluations;
  for (int i = 0; i < 400; ++i)
    evaluations.push_back({parameters.settled({i % 2 * 0.5, i / 400.0, std::fmod(i * 0.381966, 1)}), i % 40 * 1.0});
  const auto modelled = [&](double ratio, std::size_t count) {
    return RegretBoundEvaluator(parameters, ratio, 20, 1)(std::span(evaluations).first(count))
        .model.data()
        .values.size();
  };
  EXPECT_EQ(modelled(0.5, 10), 10);
  EXPECT_EQ(modelled(0.5, 30), 20);
  EXPECT_EQ(modelled(0.55, 78), 42) << "half of them, and those that are equal to the last one";
  EXPECT_EQ(modelled(1, 400), 150);
}

TEST(RegretBoundTerminator, BadOptionsAreNamed) {
  const auto faults = [](const RegretBoundTerminator& stopper, auto change) {
    TunerOptions options = ended_by(stopper);
    change(options);
    return message_of<InvalidArgument>([&] { check_options(fn<train_for_regret_bound>, options); });
  };
  const auto faults_of = [&](const RegretBoundTerminator& stopper) { return faults(stopper, [](TunerOptions&) {}); };
  const auto with = [&](auto change) { return faults({.error = StaticError{1}}, change); };
  const std::string name = "stop (RegretBoundTerminator) ";
  EXPECT_EQ(faults_of({.error = StaticError{1}}), "nothing was thrown");
  EXPECT_EQ(faults_of({}), "nothing was thrown");
  EXPECT_THAT(faults_of({.error = StaticError{}}), HasSubstr(name + "error constant: it is 0; it must be above 0"));
  EXPECT_THAT(faults_of({.error = CrossValidationError{""}}), HasSubstr(name + "error scores: say which metric"));
  EXPECT_THAT(faults_of({.error = MedianError{-1, 0, 0}}),
              AllOf(HasSubstr("error warm_up_trials: it is -1"), HasSubstr("error n_initial_trials: it is 0"),
                    HasSubstr("error threshold_ratio: it is 0")));
  EXPECT_THAT(faults_of({.top_trials_ratio = 0, .min_n_trials = 1}),
              AllOf(HasSubstr(name + "top_trials_ratio: it is 0"), HasSubstr(name + "min_n_trials: it is 1")));
  EXPECT_THAT(faults_of({.metric = "score"}), HasSubstr("which values of \"score\" are good"));
  EXPECT_THAT(with([](TunerOptions& options) { options.param_space[0].second = grid_search({1, 2}); }),
              HasSubstr(name + "param_space: \"x\" is a grid"));
  EXPECT_THAT(with([](TunerOptions& options) { options.param_space = {{"x", 1}}; }),
              HasSubstr(name + "param_space: it has no domain"));
  EXPECT_THAT(with([](TunerOptions& options) {
                options.tune_config.scheduler = PopulationBasedTraining{.hyperparam_mutations = {{"x", uniform(0, 1)}}};
              }),
              HasSubstr(name + "scheduler: it models which configs lead to which results"));
}

}  // namespace
}  // namespace cadre::tune
