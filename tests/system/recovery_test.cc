// Restores and ended trials: a restore reads no more of them than it must.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cadre/tune.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"

namespace cadre {
namespace {

namespace fs = std::filesystem;
using test_support::TemporaryDirectory;

void reports_twice(const Config& config) {
  for (int i = 1; i <= 2; ++i) tune::report({{"score", config.get<double>("lr") * i}});
}

fs::path finished_experiment(const fs::path& storage) {
  tune::Tuner tuner(fn<reports_twice>, {.param_space = {{"lr", tune::uniform(0, 1)}},
                                        .tune_config = {.num_samples = 3},
                                        .run_config = {.name = "three", .storage_path = storage, .verbose = 0}});
  return tuner.fit().experiment_path();
}

std::size_t lines_in(const fs::path& file) {
  std::ifstream stream(file);
  std::size_t count = 0;
  for (std::string line; std::getline(stream, line);) ++count;
  return count;
}

// Makes the store look as if the machine had lost its power since.
void change_boot(const fs::path& experiment) {
  const store::Database database(experiment / "experiment.db", store::Database::Access::read_write);
  store::RowWriter<store::MetaRow>(database, store::WriteMode::replace).write({"boot", "another one"});
}

TEST(Recovery, AFinishedExperimentHasASnapshotAfterItsLastEventWithoutTheTrialsThatHaveEnded) {
  const TemporaryDirectory storage;
  const fs::path experiment = finished_experiment(storage.path());
  const store::ExperimentStore store = store::ExperimentStore::open(experiment);
  const std::optional<store::Snapshot> snapshot = store.last_snapshot();
  ASSERT_TRUE(snapshot);
  std::int64_t later = 0;
  const auto count = [&](const auto&) { ++later; };
  store.visit({count, count, [](const store::DecisionRow&) {}}, snapshot->sequence);
  EXPECT_EQ(later, 0);
  EXPECT_THAT(snapshot->state, ::testing::Not(::testing::HasSubstr("score")));
  store::EndedTrials ended = store.ended_trials();
  for (int trial = 0; trial < 3; ++trial) EXPECT_THAT(ended.next(trial), ::testing::HasSubstr("score"));
}

TEST(Recovery, FilesOfEndedTrialsAreLookedAtAfterALossOfPowerOnly) {
  const TemporaryDirectory storage;
  const fs::path experiment = finished_experiment(storage.path());
  const fs::path csv = tune::ResultGrid::from_directory(experiment)[1].path / "progress.csv";
  ASSERT_EQ(lines_in(csv), 3);
  fs::resize_file(csv, fs::file_size(csv) / 2);
  const std::size_t cut = lines_in(csv);
  EXPECT_EQ(tune::Tuner::restore(experiment).fit().size(), 3);
  EXPECT_EQ(lines_in(csv), cut);

  change_boot(experiment);
  EXPECT_EQ(tune::Tuner::restore(experiment).fit().size(), 3);
  EXPECT_EQ(lines_in(csv), 3);
}

}  // namespace
}  // namespace cadre
