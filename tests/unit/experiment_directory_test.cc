#include "tune/experiment_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cadre/error.h"

namespace cadre::tune {
namespace {

TEST(ExperimentDirectory, ATagTellsItsTrialAgain) {
  for (const TrialIndex trial : {0u, 7u, 123456u}) {
    EXPECT_EQ(trial_of_tag(trial_tag(trial, {})), trial);
    EXPECT_EQ(trial_of_tag(trial_tag(trial, {{"model/lr", 0.25}, {"width", 3}})), trial);
  }
  EXPECT_EQ(trial_tag(3, {{"model/lr", 0.25}, {"width", 3}}), "3_lr=0.2500,width=3");
  for (const char* none : {"", "x", "_lr=1", "3x", "-1", "99999999999"})
    EXPECT_THROW(trial_of_tag(none), StorageError) << none;
}

TEST(ExperimentDirectory, NamesOfTrialsSortAndFitAFileName) {
  EXPECT_EQ(trial_id(3), "00003");
  EXPECT_EQ(policy_file_name(trial_id(3)), "pbt_policy_00003.txt");
  EXPECT_EQ(trial_directory_name(3, {{"lr", 0.25}}), "00003_lr=0.2500");
  EXPECT_EQ(trial_directory_name(3, {{"text", std::string(200, 'a')}}).size(), 100u);
}

}  // namespace
}  // namespace cadre::tune
