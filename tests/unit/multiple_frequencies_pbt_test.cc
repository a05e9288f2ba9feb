#include "cadre/tune/schedulers/multiple_frequencies_pbt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/json.h"
#include "support/experiment_driver.h"
#include "support/message_of.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::Driver;
using test_support::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Even trials are the fast sub-population, odd ones the slow one.
MultipleFrequenciesPBT two_frequencies(bool synch = true) {
  return {.time_attr = "training_iteration",
          .metric = "score",
          .mode = Mode::max,
          .perturbation_interval = 2,
          .interval_factors = {1, 2},
          .hyperparam_mutations = {{"lr", uniform(0, 1)}},
          .synch = synch};
}

TunerOptions with(const MultipleFrequenciesPBT& scheduler, std::int64_t trials = 8) {
  return {.param_space = {{"lr", uniform(0, 1)}},
          .tune_config = {.num_samples = trials, .scheduler = scheduler, .seed = 5}};
}

Metrics at(std::int64_t iteration, double score) { return {{"training_iteration", iteration}, {"score", score}}; }

std::string said(const Driver& driver) {
  std::string text;
  for (const Say* say : driver.all<Say>()) text += say->text + "\n";
  return text;
}

// Lets all trials report; returns the donor of each that exploits. Trials that exploit are launched again.
std::map<TrialIndex, TrialIndex> round(Driver& driver, std::int64_t iteration, const std::vector<double>& scores) {
  std::map<TrialIndex, TrialIndex> donors;
  for (TrialIndex trial = 0; trial < scores.size(); ++trial)
    driver.report(trial, at(iteration, scores[trial]), ".reporting");
  const Actions actions = driver.actions;
  for (const LogExploit* exploit : driver.all<LogExploit>()) donors[exploit->target] = exploit->donor;
  for (const auto& [target, donor] : donors) driver.feed(FunctionReturned{target, driver.trial(target).attempt});
  driver.actions = actions;
  return donors;
}

//                                    0  1  2  3  4  5  6  7
const std::vector<double> kScores = {9, 8, 7, 6, 5, 4, 1, 2};

double lr(const Driver& driver, TrialIndex trial) { return driver.trial(trial).config.get<double>("lr"); }

TEST(MultipleFrequenciesPBT, SubPopulationsEvolveAtTheirOwnMultiplesOfTheInterval) {
  Driver driver(with(two_frequencies()), 8);
  EXPECT_THAT(round(driver, 2, kScores), UnorderedElementsAre(Pair(6, 0), Pair(4, 1)));
  EXPECT_THAT(round(driver, 4, kScores), UnorderedElementsAre(Pair(6, 0), Pair(4, 1), Pair(7, 1), Pair(5, 0)));
  EXPECT_THAT(round(driver, 6, kScores), UnorderedElementsAre(Pair(6, 0), Pair(4, 1)));
  EXPECT_EQ(driver.experiment().scheduler_state(), "MultipleFrequenciesPBT: 8 exploits");
}

TEST(MultipleFrequenciesPBT, ALoserExploresTheConfigOfAWinner) {
  Driver driver(with(two_frequencies()), 8);
  const double of_winner = lr(driver, 0);
  round(driver, 2, kScores);
  EXPECT_NE(lr(driver, 6), of_winner);
  EXPECT_THAT(said(driver), HasSubstr("[MultipleFrequenciesPBT] [Explore] Perturbed the hyperparameter config of trial "
                                      "00006:\n  lr : "));
}

TEST(MultipleFrequenciesPBT, AMigrantOfASlowerSubPopulationBringsItsConfig) {
  Driver driver(with(two_frequencies()), 8);
  const double of_migrant = lr(driver, 1);
  round(driver, 2, kScores);
  EXPECT_EQ(lr(driver, 4), of_migrant);
  EXPECT_THAT(said(driver), HasSubstr("[Migrate] Trial 00004 takes the config of trial 00001 as it is\n"));
}

TEST(MultipleFrequenciesPBT, OneOfAFasterSubPopulationGetsTheConfigOfTheBestThere) {
  Driver driver(with(two_frequencies()), 8);
  round(driver, 2, kScores);
  const double of_migrant = lr(driver, 0);
  const double of_best = lr(driver, 1);
  EXPECT_THAT(round(driver, 4, kScores), ::testing::Contains(Pair(5, 0)));
  EXPECT_EQ(lr(driver, 5), of_best);
  EXPECT_NE(lr(driver, 5), of_migrant);
  EXPECT_THAT(said(driver), HasSubstr("[Migrate] Trial 00005 takes the config of trial 00001 as it is\n"));
}

TEST(MultipleFrequenciesPBT, NobodyMigratesIntoABetterTrialsPlace) {
  Driver driver(with(two_frequencies()), 8);
  EXPECT_THAT(round(driver, 2, {9, 4, 8, 3, 7, 2, 6, 1}), ElementsAre(Pair(6, 0)));
}

// Each bracket has two of the eight trials of each sub-population. The fast ones are, from the best to the worst, 0, 2,
// ..., 14, with scores of 32, 28, ..., 4, the slow ones 1, 3, ..., 15.
TEST(MultipleFrequenciesPBT, EachMigrantGoesToOneTrialAndEachWinnerIsClonedOnce) {
  std::vector<double> scores;
  for (int trial = 0; trial < 16; ++trial) scores.push_back(trial % 2 == 0 ? 32 - 2 * trial : 15 - trial);
  Driver driver(with(two_frequencies(), 16), 16);
  EXPECT_THAT(round(driver, 2, scores), UnorderedElementsAre(Pair(12, 0), Pair(14, 2), Pair(10, 1)))
      << "8 is better than 1, the best migrant, which 10 takes then";
  for (std::size_t trial = 1; trial < 16; trial += 2) scores[trial] += 100;
  Driver other(with(two_frequencies(), 16), 16);
  EXPECT_THAT(round(other, 2, scores), UnorderedElementsAre(Pair(12, 0), Pair(14, 2), Pair(8, 1), Pair(10, 3)));
}

TEST(MultipleFrequenciesPBT, WithoutSynchATrialIsComparedWhenItsOwnIntervalsHavePassed) {
  Driver driver(with(two_frequencies(false)), 8);
  for (const TrialIndex trial : {6, 4, 2, 0, 7, 5, 3, 1})
    EXPECT_THAT(driver.report(trial, at(2, kScores[trial]), ".reporting_1"), IsEmpty()) << trial;
  const std::vector<std::pair<TrialIndex, TrialIndex>> targets_and_donors{{6, 0}, {4, 1}, {7, 1}, {5, 0}};
  for (const auto& [target, donor] : targets_and_donors) {
    EXPECT_THAT(driver.report(target, at(4, kScores[target]), ".reporting_2"),
                ElementsAre("exploit " + std::to_string(target)));
    EXPECT_EQ(driver.all<LogExploit>().at(0)->donor, donor);
  }
  driver.feed(FunctionReturned{7, 1});
  EXPECT_THAT(driver.report(7, at(4, 0), ".reporting_3"), IsEmpty()) << "the third interval of its own";
  EXPECT_THAT(driver.report(7, at(6, 0), ".reporting_4"), ElementsAre("exploit 7"));
}

TEST(MultipleFrequenciesPBT, TheStateIsReadBack) {
  const TunerOptions options = with(two_frequencies());
  Driver first(options, 8);
  round(first, 2, kScores);
  Experiment again(Trainable("f"), options);
  again.load(base::parse_json(base::to_json(first.experiment().save().dict()), "the state"),
             [&](TrialIndex trial) { return first.experiment().save_trial(trial); });
  EXPECT_EQ(to_json(again.save()), to_json(first.experiment().save()));
}

TEST(MultipleFrequenciesPBT, BadOptionsAreNamed) {
  const auto faults = [](const std::function<void(MultipleFrequenciesPBT&)>& change, std::int64_t trials = 8) {
    MultipleFrequenciesPBT scheduler = two_frequencies();
    change(scheduler);
    std::vector<std::string> notes;
    return message_of<InvalidArgument>(
        [&] { check_options(Trainable("f"), resolve(Trainable("f"), with(scheduler, trials), notes)); });
  };
  EXPECT_THAT(
      faults([](auto&) {}, 7),
      HasSubstr("scheduler (MultipleFrequenciesPBT) interval_factors: they make 2 sub-populations, which need 4 "
                "trials each, 8 in all, and there are 7: raise num_samples, or name fewer factors"));
  for (const std::vector<std::int64_t>& factors :
       std::vector<std::vector<std::int64_t>>{{}, {1}, {2, 4}, {1, 1}, {1, 3, 2}, {0, 1}})
    EXPECT_THAT(faults([&](auto& scheduler) { scheduler.interval_factors = factors; }),
                HasSubstr("interval_factors: they must be at least 2 and grow from 1 on"));
  EXPECT_THAT(faults([](auto& scheduler) { scheduler.quantile_fraction = 0.4; }), HasSubstr("from 0 to a third"));
  EXPECT_THAT(faults([](auto& scheduler) { scheduler.quantile_fraction = 0.6; }), HasSubstr("from 0 to 0.5"));
  EXPECT_THAT(faults([](auto& scheduler) { scheduler.hyperparam_mutations = {}; }), HasSubstr("at least one key"));
  EXPECT_THAT(faults([](auto& scheduler) { scheduler.perturbation_interval = -1; }), HasSubstr("must be above 0"));
  EXPECT_THAT(faults([](auto& scheduler) { scheduler.time_attr = ""; }), HasSubstr("time_attr"));
}

}  // namespace
}  // namespace cadre::tune
