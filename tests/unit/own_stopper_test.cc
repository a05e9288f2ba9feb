// A program's own stopper: it ends trials and the experiment, its options are stored, checked and completed, and a
// restore takes its answers from the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cadre/stored.h"
#include "cadre/tune/stopper.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
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

int asked_to_stop_all = 0;  // in this test

}  // namespace

// Ends trials below a limit, and all of them when so many have ended, or have reported so many results.
struct StopWhenSeen {
  double limit = 0;
  std::int64_t ends = 1000;
  std::int64_t results = 1000;
  Objective metric = {};
  std::optional<Mode> mode = {};

  std::unique_ptr<Stopper> make(const StopperSetting&) const;
  void check(const TunerOptions&, Faults& faults) const { faults.unless(limit >= 0, "limit", "it is below 0"); }
  Stopper::Traits traits() const { return {.metrics = {metric.name}}; }
};

// Ends trials whose loss is 0, or fails, and stores its answers.
struct StopByTheWeather {
  std::unique_ptr<Stopper> make(const StopperSetting&) const;
  Stopper::Traits traits() const { return {.recorded = true}; }
};

namespace {

class SeenStopper final : public Stopper {
 public:
  explicit SeenStopper(StopWhenSeen options) : options_(std::move(options)) {}

  bool on_result(const TrialView& trial, const Metrics& result) override {
    EXPECT_EQ(trial.num_results(), 0) << "each trial of these tests reports once, and that is not counted yet";
    ++state_.results;
    return result.number(options_.metric.name) < options_.limit;
  }
  void on_trial_end(const TrialView& trial) override { state_.ended.push_back(trial.id() + to_string(trial.status())); }
  std::optional<std::string> stop_all() const override {
    ++asked_to_stop_all;
    if (std::ssize(state_.ended) >= options_.ends) return "these have ended: " + state_.ended.front();
    return state_.results >= options_.results ? std::optional("enough results") : std::nullopt;
  }
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override { state_ = from_value<State>(state); }

 private:
  struct State {
    std::int64_t results = 0;
    std::vector<std::string> ended = {};
  };
  StopWhenSeen options_;
  State state_ = {};
};

class WeatherStopper final : public Stopper {
 public:
  bool on_result(const TrialView&, const Metrics& result) override {
    if (!result.contains("loss")) throw std::runtime_error("it rains");
    return result.get<double>("loss") == 0;
  }
};

}  // namespace

std::unique_ptr<Stopper> StopWhenSeen::make(const StopperSetting&) const {
  return std::make_unique<SeenStopper>(*this);
}
std::unique_ptr<Stopper> StopByTheWeather::make(const StopperSetting&) const {
  return std::make_unique<WeatherStopper>();
}

namespace {

TunerOptions stopped_by(Stop stop, std::int64_t trials = 4) {
  TunerOptions options{.tune_config = {.metric = minimize("loss"), .num_samples = trials},
                       .run_config = {.stop = std::move(stop)}};
  std::vector<std::string> notes;
  return resolve(Trainable("f"), std::move(options), notes);
}

// The decisions of the last event, as a replay reads them.
RecordedAnswers recorded(const Driver& driver) {
  std::vector<store::DecisionRow> rows;
  for (const RecordDecision* decision : driver.all<RecordDecision>()) rows.push_back(to_row(*decision, 1));
  return answers_of(rows);
}

TEST(OwnStopper, EndsATrialByTheTuneConfigsMetric) {
  Driver driver(stopped_by(StopWhenSeen{.limit = 0.5}), 2);
  EXPECT_THAT(driver.report(0, {{"loss", 0.7}}), IsEmpty());
  EXPECT_THAT(driver.report(1, {{"loss", 0.4}}), ElementsAre("end 1"));
  EXPECT_EQ(driver.trial(1).status, TrialStatus::terminated);
}

TEST(OwnStopper, EndsTheExperimentAfterAResult) {
  Driver driver(stopped_by(StopWhenSeen{.results = 2}), 2);
  EXPECT_THAT(driver.report(0, {{"loss", 0.7}}), IsEmpty());
  EXPECT_THAT(driver.report(1, {{"loss", 0.7}}), ElementsAre("stop_all 1", "end 1"));
  ASSERT_EQ(driver.all<Say>().size(), 1U);
  EXPECT_EQ(driver.all<Say>()[0]->text, "All trials stop: enough results");
  EXPECT_EQ(driver.trial(0).status, TrialStatus::running) << "until its next report";
  EXPECT_EQ(driver.experiment().trials_to_come(), 0);
}

TEST(OwnStopper, EndsTheExperimentAfterTheEndOfATrial) {
  Driver driver(stopped_by(StopWhenSeen{.ends = 2}), 2);
  EXPECT_THAT(driver.feed(FunctionThrew{0, 1, "no"}), ElementsAre("fail 0", "launch 2"));
  EXPECT_THAT(driver.feed(FunctionReturned{1, 1}), ElementsAre("end 1", "stop_all 1"));
  EXPECT_EQ(driver.all<Say>().back()->text, "All trials stop: these have ended: 00000ERROR");
  EXPECT_EQ(driver.experiment().trials().size(), 3U) << "none is made any more";
}

TEST(OwnStopper, IsNotAskedWhenNothingIsLeftToStop) {
  Driver driver(stopped_by(StopWhenSeen{.ends = 1}, 1), 2);
  EXPECT_THAT(driver.feed(FunctionReturned{0, 1}), ElementsAre("end 0"));
  EXPECT_THAT(driver.all<Say>(), IsEmpty());
}

// The same event, with and without the decision.
TEST(OwnStopper, ARestoreTakesItsAnswersFromTheRecord) {
  const TunerOptions options = stopped_by(StopWhenSeen{.ends = 1});
  Driver first(options, 2);
  first.feed(FunctionReturned{0, 1});
  for (const RecordedAnswers& answers : {recorded(first), RecordedAnswers()}) {
    Driver again(options, 2);
    asked_to_stop_all = 0;
    Actions actions;
    again.experiment().handle(FunctionReturned{0, 1}, actions, &answers);
    EXPECT_EQ(asked_to_stop_all, 0);
    EXPECT_EQ(again.experiment().trials_to_come() == 0, !answers.empty());
  }
}

TEST(OwnStopper, AnAnswerAfterAResultIsNoneAfterTheEndOfTheSameEvent) {
  const TunerOptions options = stopped_by(any_of(StopWhenSeen{.limit = 1, .ends = 1}));
  Driver first(options, 2);
  const std::vector<std::string> decided = first.report(0, {{"loss", 0.5}});
  EXPECT_THAT(decided, ElementsAre("end 0", "stop_all 0"));
  const RecordedAnswers answers = recorded(first);
  Driver again(options, 2);
  Actions actions;
  again.experiment().handle(ResultReported{0, 1, {1, {{"loss", 0.5}}, {}}}, actions, &answers);
  std::vector<std::string> decided_again;
  for (const Action& action : actions) {
    if (const auto* made = std::get_if<RecordDecision>(&action))
      decided_again.push_back(std::string(to_string(made->kind)) + " " + std::to_string(made->trial));
  }
  EXPECT_EQ(decided_again, decided);
}

TEST(OwnStopper, AnswersOnResultsAreRecordedIfItSaysSo) {
  const TunerOptions options = stopped_by(StopByTheWeather());
  Driver driver(options, 2);
  EXPECT_THAT(driver.report(0, {{"loss", 0}}), ElementsAre("stop_function 0", "end 0"));
  EXPECT_THAT(driver.report(1, {{"other", 0}}), ElementsAre("stop_function 1", "fail 1"));
  EXPECT_THAT(driver.trial(1).error, HasSubstr("it rains"));
  Driver again(options, 2);
  Actions actions;
  const RecordedAnswers none;
  again.experiment().handle(ResultReported{0, 1, {1, {{"loss", 0}}, {}}}, actions, &none);
  EXPECT_EQ(again.trial(0).status, TrialStatus::running) << "it is not asked again";
}

TEST(OwnStopper, ItsStateIsPartOfTheExperiments) {
  Driver driver(stopped_by(StopWhenSeen{.ends = 2}), 2);
  driver.feed(FunctionReturned{0, 1});
  Experiment again = driver.experiment().anew();
  again.load(driver.experiment().save(), [&](TrialIndex trial) { return driver.experiment().save_trial(trial); });
  Actions actions;
  again.handle(FunctionReturned{1, 1}, actions);
  EXPECT_EQ(again.trials_to_come(), 0) << "the second end";
}

TEST(OwnStopper, ItsOptionsAreReadBackByName) {
  const Dict stored = describe({}, stopped_by(any_of(StopWhenSeen{.limit = 0.25}, Stop{{"loss", 1}})));
  const Stop stop = parse_description(stored, "the store").options.run_config.stop;
  ASSERT_EQ(stop.stoppers.size(), 1U);
  EXPECT_EQ(stop.stoppers[0].name(), "StopWhenSeen");
  EXPECT_EQ(stop.stoppers[0].get<StopWhenSeen>().limit, 0.25);
  EXPECT_EQ(stop.stoppers[0].get<StopWhenSeen>().mode, Mode::min) << "completed from the TuneConfig";
}

TEST(OwnStopper, OneOfAnotherProgramIsShownAndRefused) {
  const Dict stop{{"thresholds", Dict()}, {"stoppers", list(Dict{{"type", "Theirs"}, {"a", 1}})}};
  const TunerOptions options = parse_description(Dict{{"run_config", Dict{{"stop", stop}}}}, "the store").options;
  EXPECT_EQ(to_json(Config(describe({}, options)).at("run_config/stop")), to_json(stop));
  EXPECT_THAT(message_of<InvalidArgument>([&] { check_options(Trainable("f"), options); }),
              HasSubstr("stop (Theirs) type: this program has none of that name; it has: "));
}

TEST(OwnStopper, ItsFaultsAreNamedWithItsName) {
  EXPECT_THAT(message_of<InvalidArgument>([] { check_options(Trainable("f"), stopped_by(StopWhenSeen{.limit = -1})); }),
              HasSubstr("stop (StopWhenSeen) limit: it is below 0"));
  EXPECT_THAT(message_of<InvalidArgument>([] { check_options(Trainable("f"), stopped_by(TimeoutStopper{})); }),
              HasSubstr("stop (TimeoutStopper) timeout: it is 0 s; it must be above 0"));
  EXPECT_THAT(message_of<InvalidArgument>([] { check_options(Trainable("f"), stopped_by(AnyStopper())); }),
              HasSubstr("a stopper is empty"));
}

}  // namespace
}  // namespace cadre::tune
