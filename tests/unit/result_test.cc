#include "cadre/tune/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "cadre/error.h"
#include "support/message_of.h"
#include "tune/results/result_rows.h"

namespace cadre::tune {
namespace {

Result result(std::string id, Metrics metrics, TrialStatus status = TrialStatus::terminated) {
  return {.trial_id = std::move(id),
          .status = status,
          .config = {},
          .metrics = std::move(metrics),
          .checkpoint = {},
          .best_checkpoints = {},
          .path = {},
          .error = {}};
}

TEST(ResultGrid, TheBestIsFoundAmongFiniteNumbers) {
  const ResultGrid grid("x",
                        {result("0", {{"a", std::nan("")}}), result("1", {{"a", 2}}), result("2", {{"a", 2.0}}),
                         result("3", {}), result("4", {{"a", INFINITY}}), result("5", {{"a", 1}})},
                        maximize("a"));
  EXPECT_EQ(grid.get_best_result().trial_id, "1");
  EXPECT_EQ(grid.get_best_result(minimize("a")).trial_id, "5");
}

TEST(ResultGrid, AnotherMetricThanTheExperimentsNeedsADirection) {
  const ResultGrid grid("x", {result("0", {{"a", 1}, {"b", 1}}), result("1", {{"a", 2}, {"b", 2}})}, minimize("a"));
  EXPECT_EQ(grid.get_best_result("a").trial_id, "0");
  EXPECT_EQ(grid.get_best_result("a", Mode::max).trial_id, "1");
  EXPECT_EQ(grid.get_best_result("b", Mode::max).trial_id, "1");
  EXPECT_EQ(grid.get_best_result(minimize("b")).trial_id, "0");
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { grid.get_best_result("b"); }),
              testing::HasSubstr("which values of \"b\" are good"));
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { grid.get_best_result(minimize("b"), Mode::max); }),
              testing::HasSubstr("said to be min with the metric, and max by mode"));
  std::ostringstream table;
  EXPECT_THROW(grid.write_csv(table, {.rows = Rows::best, .metric = "b"}), InvalidArgument);
}

// A trial with three results, an exploit after the second one.
Result trial_with_history() {
  Result trial = result("00004", {});
  trial.drawn_config = Config{{"lr", 0.1}, {"model", {{"width", 8}}}};
  trial.config = Config{{"lr", 0.2}, {"model", {{"width", 8}}}};
  trial.exploits.push_back({.training_iteration = 2, .first_result = 2, .config = trial.config});
  detail::ResultRows rows;
  rows.results = {Metrics{{"loss", 3}, {"eval", {{"accuracy", 0.5}}}, {"phase", "warm"}, {"steps", 10}},
                  Metrics{{"loss", 2.5}, {"eval", {{"accuracy", Value()}}}, {"phase", "warm"}, {"steps", 20}},
                  Metrics{{"loss", "diverged"}, {"phase", "hot"}, {"steps", 30}, {"late", true}}};
  trial.rows = std::make_shared<const detail::ResultRows>(std::move(rows));
  return trial;
}

TEST(Result, AColumnHasTheValuesOfAMetricOrAParameterOverTheResults) {
  const Result trial = trial_with_history();
  EXPECT_THAT(trial.column<double>("steps"), testing::ElementsAre(10, 20, 30));
  EXPECT_THAT(trial.column<std::int64_t>("steps"), testing::ElementsAre(10, 20, 30));
  EXPECT_THAT(trial.column<std::string>("phase"), testing::ElementsAre("warm", "warm", "hot"));
  EXPECT_THAT(trial.column<double>("config/lr"), testing::ElementsAre(0.1, 0.1, 0.2));
  EXPECT_THAT(trial.column<int>("config/model/width"), testing::ElementsAre(8, 8, 8));
  EXPECT_THAT(trial.column<Value>("loss"), testing::ElementsAre(Value(3), Value(2.5), Value("diverged")));
  EXPECT_THAT(result("0", {}).column<double>("loss"), testing::IsEmpty());
}

TEST(Result, InAColumnWhatIsMissingIsNaNOrNothing) {
  const Result trial = trial_with_history();
  EXPECT_THAT(trial.column<double>("eval/accuracy"), testing::ElementsAre(0.5, testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(trial.column<std::optional<double>>("eval/accuracy"),
              testing::ElementsAre(0.5, std::nullopt, std::nullopt));
  EXPECT_THAT(trial.column<std::optional<bool>>("late"), testing::ElementsAre(std::nullopt, std::nullopt, true));
  EXPECT_THAT(trial.column<Value>("late"), testing::ElementsAre(Value(), Value(), Value(true)));
  EXPECT_THAT(test_support::message_of<NotFound>([&] { trial.column<bool>("late"); }),
              testing::HasSubstr("column \"late\" of trial 00004: result 0 lacks it; ask for a std::optional"));
}

TEST(Result, AColumnThatIsNotThereOrOfAnotherTypeIsNamed) {
  const Result trial = trial_with_history();
  EXPECT_THAT(
      test_support::message_of<InvalidArgument>([&] { trial.column<double>("loss"); }),
      testing::AllOf(testing::HasSubstr("column \"loss\" of trial 00004, result 2: "), testing::HasSubstr("diverged")));
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { trial.column<std::string>("steps"); }),
              testing::HasSubstr("column \"steps\" of trial 00004, result 0: "));
  EXPECT_THAT(test_support::message_of<NotFound>([&] { trial.column<double>("los"); }),
              testing::HasSubstr("no result of trial 00004 has a column \"los\"; the last one has: loss, phase, steps, "
                                 "late, config/lr, config/model/width"));
}

TEST(ResultGrid, WithoutAMetricOrAnyNumberItSaysSo) {
  EXPECT_THROW(ResultGrid("x", {result("0", {{"a", 1}})}, "").get_best_result(), InvalidArgument);
  EXPECT_THROW(ResultGrid("x", {result("0", {})}, maximize("a")).get_best_result(), NotFound);
  const ResultGrid misspelt("x", {result("0", {}), result("1", {{"training_iteration", 1}, {"accuracy", 0.5}})},
                            maximize("acuracy"));
  EXPECT_THAT(test_support::message_of<NotFound>([&] { misspelt.get_best_result(); }),
              testing::HasSubstr("number \"acuracy\" in its last result; the last result of trial 1 has: accuracy"));
}

TEST(ResultGrid, TheParetoFrontHasTheTrialsThatNoOtherBeatsInTheOrderOfTheFirstMetric) {
  const ResultGrid grid(
      "x",
      {result("0", {{"loss", 3}, {"size", 1}}), result("1", {{"loss", 1}, {"size", 5}}),
       result("2", {{"loss", 3}, {"size", 2}}), result("3", {{"loss", 2}, {"size", 2}}),
       result("4", {{"loss", 2}, {"size", 2}}), result("5", {{"loss", 0}}),
       result("6", {{"loss", 0}, {"size", std::nan("")}}), result("7", {{"loss", 0}, {"size", INFINITY}})},
      minimize("loss"));
  EXPECT_THAT(grid.pareto_front({minimize("loss"), minimize("size")}), testing::ElementsAre(1, 3, 4, 0));
  EXPECT_THAT(grid.pareto_front({minimize("size"), "loss"}), testing::ElementsAre(0, 3, 4, 1));
  EXPECT_THAT(grid.pareto_front({maximize("loss"), maximize("size")}), testing::ElementsAre(2, 1));
  EXPECT_THAT(grid.pareto_front({minimize("loss")}), testing::ElementsAre(5, 6, 7));
}

TEST(ResultGrid, AParetoFrontNeedsMetricsWithDirectionsThatATrialHas) {
  const ResultGrid grid("x", {result("0", {{"loss", 1}, {"size", 1}})}, minimize("loss"));
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { grid.pareto_front({}); }),
              testing::HasSubstr("give several, as {minimize(\"loss\")"));
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { grid.pareto_front({"loss", "size", "loss"}); }),
              testing::AllOf(testing::HasSubstr("which values of \"size\" are good"),
                             testing::HasSubstr("loss: it is there twice")));
  EXPECT_THAT(
      test_support::message_of<NotFound>([&] { grid.pareto_front({"loss", minimize("latency")}); }),
      testing::HasSubstr("finite numbers \"loss\" and \"latency\"; the last result of trial 0 has: loss, size"));
}

TEST(Result, TheConfigOfAResultIsThatOfTheLastExploitBeforeIt) {
  Result trial = result("0", {});
  trial.drawn_config = {{"lr", 1}};
  trial.exploits = {{.first_result = 2, .config = {{"lr", 2}}}, {.first_result = 5, .config = {{"lr", 3}}}};
  std::vector<std::int64_t> rates;
  for (std::size_t i = 0; i < 7; ++i) rates.push_back(trial.config_at(i).get<std::int64_t>("lr"));
  EXPECT_EQ(rates, (std::vector<std::int64_t>{1, 1, 2, 2, 2, 3, 3}));
}

TEST(ResultGrid, ErrorsNameTheirTrial) {
  Result failed = result("00007", {}, TrialStatus::error);
  failed.error = "boom";
  const ResultGrid grid("x", {result("0", {}), failed}, "");
  EXPECT_EQ(grid.errors(), std::vector<std::string>{"trial 00007: boom"});
  EXPECT_EQ(grid.num_errors(), 1u);
  EXPECT_EQ(grid.num_terminated(), 1u);
}

TEST(Result, TheBestCheckpointIsTheOneWithTheBestMetric) {
  Result trial = result("0", {});
  trial.best_checkpoints = {{Checkpoint::from_directory("a"), {{"loss", 0.3}}},
                            {Checkpoint::from_directory("b"), {{"loss", 0.1}}},
                            {Checkpoint::from_directory("c"), {}}};
  EXPECT_EQ(trial.get_best_checkpoint("loss", Mode::min).path(), "b");
  EXPECT_THROW(static_cast<void>(trial.get_best_checkpoint(minimize("nothing"))), NotFound);
}

}  // namespace
}  // namespace cadre::tune
