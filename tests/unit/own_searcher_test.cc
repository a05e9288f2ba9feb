// A program's own searcher: its suggestions become configs, a restore takes them from the record, and its mistakes are
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cadre/stored.h"
#include "cadre/tune/searcher.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/console/status.h"
#include "tune/description.h"
#include "tune/journal.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::Driver;
using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int suggestions = 0;  // asked for, in this test

Value next_number() {
  static int number = 0;
  return ++number;
}

}  // namespace

// Suggests half of the best value so far.
struct Halving {
  double first = 8;
  std::int64_t at_a_time = 100;
  std::string key = "x";
  bool any_values = false;
  std::int64_t most = 100;  // suggestions

  std::unique_ptr<Searcher> make(const SearcherSetting&) const;
  Searcher::Traits traits() const { return {.may_wait = true, .any_values = any_values}; }
};

namespace {

class HalvingSearcher final : public Searcher {
 public:
  HalvingSearcher(Halving options, Objective metric) : options_(std::move(options)), metric_(std::move(metric)) {}

  std::optional<Config> suggest(TrialIndex) const override {
    ++suggestions;
    if (std::ssize(running_) >= options_.at_a_time || is_finished()) return std::nullopt;
    return Config{{options_.key, best_ ? *best_ / 2 : options_.first}};
  }
  bool is_finished() const override { return added_ >= options_.most; }
  void on_trial_add(TrialIndex trial, const Config& config) override {
    running_[trial] = config.get<double>("x");
    ++added_;
  }
  void on_result(TrialIndex trial, const Metrics&) override { log_ += " " + std::to_string(trial); }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    if (status == TrialStatus::terminated && last_result.contains(metric_.name)) best_ = running_.at(trial);
    running_.erase(trial);
  }
  Value save() const override { return Value(log_); }
  void load(const Value& state) override { log_ = state.get<std::string>(); }
  std::string debug_string() const override { return log_; }

 private:
  Halving options_;
  Objective metric_;
  std::map<TrialIndex, double> running_;
  std::optional<double> best_;
  std::int64_t added_ = 0;
  std::string log_ = "results of";
};

TunerOptions halving(const Halving& searcher, std::int64_t trials) {
  TunerOptions options{.param_space = {{"x", uniform(0, 10)}, {"y", uniform(0, 1)}, {"f", fn<next_number>}},
                       .tune_config = {.metric = minimize("loss"), .num_samples = trials, .searcher = searcher}};
  std::vector<std::string> notes;
  return resolve(Trainable("f"), std::move(options), notes);
}

// Ends a trial with its first result.
void end(Driver& driver, TrialIndex trial) {
  driver.report(trial, {{"loss", 1}, {"done", true}});
  driver.feed(FunctionReturned{trial, 1});
}
void end(Experiment& experiment, TrialIndex trial, std::int64_t step) {
  Actions actions;
  test_support::handle_and_suggest(experiment, ResultReported{trial, 1, {step, {{"loss", 1}, {"done", true}}, {}}},
                                   actions);
  actions.clear();
  test_support::handle_and_suggest(experiment, FunctionReturned{trial, 1}, actions);
}

double x_of(const Driver& driver, TrialIndex trial) { return driver.trial(trial).config.get<double>("x"); }

// The decisions of an event, as a replay reads them.
RecordedAnswers recorded(const Driver& driver) {
  std::vector<store::DecisionRow> rows;
  for (const RecordDecision* decision : driver.all<RecordDecision>()) rows.push_back(to_row(*decision, 1));
  return answers_of(rows);
}

}  // namespace

std::unique_ptr<Searcher> Halving::make(const SearcherSetting& setting) const {
  return std::make_unique<HalvingSearcher>(*this, setting.metric);
}

namespace {

TEST(OwnSearcher, ItsValuesBecomeConfigsAndOtherKeysAreDrawn) {
  Driver driver(halving({}, 3), 1);
  EXPECT_EQ(x_of(driver, 0), 8);
  EXPECT_TRUE(driver.trial(0).config.contains("y") && driver.trial(0).config.contains("f"));
  EXPECT_THAT(driver.trial(0).tag, HasSubstr("x=8.0000,y="));
  end(driver, 0);
  EXPECT_EQ(x_of(driver, 1), 4) << "it knows of the end of the first";
  driver.feed(FunctionThrew{1, 1, "no"});
  EXPECT_EQ(x_of(driver, 2), 4) << "a failed trial teaches nothing here";
  EXPECT_EQ(driver.experiment().searcher_state(), "results of 0");
  EXPECT_EQ(console::view_of(driver.experiment()).searcher_state, "results of 0");
}

TEST(OwnSearcher, PointsToEvaluateComeFirstAndItIsToldOfThem) {
  TunerOptions options = halving({}, 2);
  options.tune_config.points_to_evaluate = {{{"x", 1}}};
  Driver driver(options, 1);
  EXPECT_EQ(x_of(driver, 0), 1);
  end(driver, 0);
  EXPECT_EQ(x_of(driver, 1), 0.5);
}

TEST(OwnSearcher, MayWaitForTheEndOfATrial) {
  Driver driver(halving({.at_a_time = 2}, 4), 4);
  EXPECT_EQ(driver.experiment().trials().size(), 2U);
  end(driver, 1);
  EXPECT_EQ(driver.experiment().trials().size(), 3U);
  EXPECT_THAT(message_of<std::logic_error>([] { Driver(halving({.at_a_time = 0}, 4), 1); }),
              HasSubstr("the searcher Halving waits for the end of a trial, and there is none"));
}

TEST(OwnSearcher, AValueOutsideOfTheSpaceIsNamed) {
  EXPECT_THAT(message_of<InvalidArgument>([] { Driver(halving({.first = 11}, 1), 1); }),
              HasSubstr("value \"x\": 11.0 is not in uniform(0.0, 10.0)"));
  EXPECT_THAT(message_of<InvalidArgument>([] { Driver(halving({.key = "z"}, 1), 1); }),
              HasSubstr("param_space has no such key"));
}

TEST(OwnSearcher, MayBeOneThatSuggestsAnything) {
  Driver driver(halving({.first = 11, .any_values = true}, 1), 1);
  EXPECT_EQ(x_of(driver, 0), 11) << "outside of the space";
  Driver another(halving({.key = "model/width", .any_values = true}, 1), 1);
  const Trial& trial = another.trial(0);
  EXPECT_EQ(trial.config.get<double>("model/width"), 8) << "a key that the space lacks";
  EXPECT_TRUE(trial.config.contains("x"));
  EXPECT_THAT(trial.tag, HasSubstr("width=8.0000"));
}

TEST(OwnSearcher, MayHaveNothingMoreToSuggest) {
  Driver driver(halving({.most = 2}, 5), 1);
  EXPECT_EQ(driver.experiment().trials_to_come(), 4);
  end(driver, 0);
  EXPECT_EQ(driver.experiment().trials_to_come(), 3) << "it was not asked again yet";
  end(driver, 1);
  EXPECT_EQ(driver.experiment().trials().size(), 2U);
  EXPECT_EQ(driver.experiment().trials_to_come(), 0);
  for (const TrialIndex trial : {0, 1}) driver.feed(WorkerEnded{trial, 1});
  EXPECT_TRUE(driver.experiment().finished());
  Experiment again(Trainable("f"), halving({.most = 2}, 5));
  again.load(driver.experiment().save(), [&](TrialIndex trial) { return driver.experiment().save_trial(trial); });
  EXPECT_EQ(again.trials_to_come(), 0) << "a snapshot has that";
}

TEST(OwnSearcher, ARestoreTakesConfigsFromTheRecord) {
  const TunerOptions options = halving({}, 4);
  Driver first(options, 2);
  const RecordedAnswers at_start = recorded(first);
  Experiment again(Trainable("f"), options);
  suggestions = 0;
  Actions actions;
  again.handle(ControllerStarted{{.cpus = 2}}, actions, &at_start);
  EXPECT_EQ(suggestions, 0) << "neither the searcher nor the function is asked again";
  for (const TrialIndex trial : {0, 1}) {
    EXPECT_EQ(again.trials().at(trial).config, first.trial(trial).config);
    EXPECT_EQ(again.trials().at(trial).tag, first.trial(trial).tag);
  }
  end(first, 1);
  end(again, 1, 1);
  EXPECT_EQ(again.trials().at(2).config.get<double>("x"), x_of(first, 2)) << "it decides as before from there on";
}

TEST(OwnSearcher, ASnapshotHasConfigsAndState) {
  const TunerOptions options = halving({}, 5);
  Driver first(options, 2);
  end(first, 0);
  first.report(1, {{"loss", 1}});
  Experiment again(Trainable("f"), options);
  again.load(first.experiment().save(), [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  EXPECT_EQ(again.searcher_state(), "results of 0 1");
  for (const TrialIndex trial : {0, 1, 2}) {
    EXPECT_EQ(again.trials().at(trial).config, first.trial(trial).config);
    EXPECT_EQ(again.trials().at(trial).directory, first.trial(trial).directory);
  }
  end(first, 1);
  end(again, 1, 2);
  EXPECT_EQ(again.trials().at(3).config.get<double>("x"), x_of(first, 3));
}

// Returns the trials whose suggestions the last event has asked for.
std::vector<TrialIndex> asked(const Driver& driver) {
  std::vector<TrialIndex> trials;
  for (const AskSearcher* ask : driver.all<AskSearcher>()) trials.push_back(ask->trial);
  return trials;
}

// Two of five trials run, and one has ended: the third's suggestion is awaited.
class AwaitedSuggestion : public ::testing::Test {
 protected:
  AwaitedSuggestion() {
    driver_.answers_for_searcher = false;
    driver_.report(0, {{"loss", 1}, {"done", true}});
    driver_.feed(FunctionReturned{0, 1});
    EXPECT_THAT(asked(driver_), ElementsAre(2));
  }

  TunerOptions options_ = halving({}, 5);
  Driver driver_{options_, 2};
};

TEST_F(AwaitedSuggestion, HoldsNoReportUpAndTheSearcherIsToldOfItAfterwards) {
  driver_.report(1, {{"loss", 1}});
  EXPECT_EQ(driver_.all<AnswerReport>().size(), 1U);
  EXPECT_THAT(asked(driver_), IsEmpty());
  EXPECT_EQ(driver_.experiment().searcher_state(), "results of 0");
  EXPECT_THAT(driver_.feed(Suggested{2, Config{{"x", 3}}}), ElementsAre("launch 2"));
  EXPECT_EQ(x_of(driver_, 2), 3);
  EXPECT_EQ(driver_.experiment().searcher_state(), "results of 0 1");
}

TEST_F(AwaitedSuggestion, IsAskedForAgainIfATrialHasEndedAndThereWasNone) {
  driver_.report(1, {{"loss", 1}, {"done", true}});
  driver_.feed(FunctionReturned{1, 1});
  EXPECT_THAT(asked(driver_), IsEmpty());
  driver_.feed(Suggested{2});
  EXPECT_THAT(asked(driver_), ElementsAre(2));
  driver_.feed(Suggested{2, Config{{"x", 3}}});
  EXPECT_THAT(asked(driver_), ElementsAre(3)) << "the other slot is free too";
}

TEST_F(AwaitedSuggestion, IsNotAskedForAgainBeforeATrialHasEnded) {
  driver_.feed(Suggested{2});
  driver_.report(1, {{"loss", 1}});
  EXPECT_THAT(asked(driver_), IsEmpty());
  driver_.feed(FunctionReturned{1, 1});
  EXPECT_THAT(asked(driver_), ElementsAre(2));
}

TEST_F(AwaitedSuggestion, IsInASnapshot) {
  driver_.report(1, {{"loss", 1}, {"done", true}});
  driver_.feed(FunctionReturned{1, 1});
  Experiment again(Trainable("f"), options_);
  again.load(driver_.experiment().save(), [&](TrialIndex trial) { return driver_.experiment().save_trial(trial); });
  EXPECT_EQ(again.searcher_state(), "results of 0");
  const Suggested suggested{2, Config{{"x", 3}}};
  driver_.feed(suggested);
  const RecordedAnswers answers = recorded(driver_);
  Actions actions;
  again.handle(suggested, actions, &answers);
  EXPECT_EQ(again.searcher_state(), "results of 0 1");
  EXPECT_EQ(to_json(again.save()), to_json(driver_.experiment().save()));
  EXPECT_EQ(again.searcher().suggest(3), driver_.experiment().searcher().suggest(3));
}

TEST_F(AwaitedSuggestion, IsAskedForAnewByAnotherController) {
  driver_.report(1, {{"loss", 1}});
  driver_.feed(ControllerStarted{{.cpus = 2}});
  EXPECT_EQ(driver_.experiment().searcher_state(), "results of 0 1");
  EXPECT_THAT(asked(driver_), ElementsAre(2));
}

TEST_F(AwaitedSuggestion, IsNotUsedAfterAnInterruption) {
  driver_.feed(ExperimentInterrupted{});
  EXPECT_THAT(driver_.feed(Suggested{2, Config{{"x", 3}}}), IsEmpty());
  EXPECT_EQ(driver_.experiment().trials().size(), 2U);
}

TEST(OwnSearcher, WhatDoesNotGoTogetherIsRefused) {
  const auto faults = [](const std::function<void(TunerOptions&)>& change) {
    TunerOptions options{.param_space = {{"x", uniform(0, 10)}},
                         .tune_config = {.metric = minimize("loss"), .searcher = Halving()}};
    change(options);
    std::vector<std::string> notes;
    return message_of<InvalidArgument>([&] { check_options(Trainable("f"), resolve(Trainable("f"), options, notes)); });
  };
  EXPECT_THAT(faults([](TunerOptions& options) { options.tune_config.metric = {}; }),
              HasSubstr("searcher (Halving): it learns from results, so say by which metric"));
  EXPECT_THAT(faults([](TunerOptions& options) { options.param_space[0].second = grid_search({1, 2}); }),
              HasSubstr("searcher (Halving): param_space \"x\" is a grid"));
  EXPECT_THAT(faults([](TunerOptions& options) { options.param_space[0].second = 1; }),
              HasSubstr("param_space has no domain that it could choose values from"));
  EXPECT_THAT(faults([](TunerOptions& options) {
                options.tune_config.scheduler =
                    PopulationBasedTraining{.hyperparam_mutations = {{"x", uniform(0, 10)}}};
              }),
              HasSubstr("the scheduler PopulationBasedTraining changes configs during training"));
}

TEST(OwnSearcher, IsStoredAndReadBack) {
  const Description read =
      parse_description(Value(describe(Trainable("f"), halving({.first = 3, .at_a_time = 7}, 1))), "the options");
  const auto& options = read.options.tune_config.searcher.get<Halving>();
  EXPECT_EQ(options.first, 3);
  EXPECT_EQ(options.at_a_time, 7);
}

}  // namespace
}  // namespace cadre::tune
