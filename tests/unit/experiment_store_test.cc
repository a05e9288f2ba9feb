#include "store/experiment_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/error.h"
#include "store/experiment_lock.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using cadre::test_support::TemporaryDirectory;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All rows as text, in the order in which they are visited.
std::vector<std::string> rows_of(const ExperimentStore& store) {
  std::vector<std::string> rows;
  store.visit({.result = [&](const ResultRow& row) { rows.push_back("result " + row.metrics); },
               .event = [&](const EventRow& row) { rows.push_back("event " + row.kind); },
               .decision = [&](const DecisionRow& row) { rows.push_back("decision " + row.kind); }});
  return rows;
}

TEST(ExperimentStore, KeepsResultsEventsAndDecisionsInOneOrder) {
  const TemporaryDirectory directory;
  {
    ExperimentStore store = ExperimentStore::create(directory.path(), {"name", "trainable", "{}"});
    const std::int64_t started = store.add(EventRow{.kind = "started"});
    store.add(DecisionRow{.cause = started, .kind = "launch", .trial = 0});
    const std::int64_t result = store.add(ResultRow{.trial = 0, .metrics = R"({"a": 1})"});
    store.add(DecisionRow{.cause = result, .kind = "pause", .trial = 0});
    store.add(DecisionRow{.cause = result, .kind = "resume", .trial = 0});
    store.commit();
  }
  ExperimentStore store = ExperimentStore::open(directory.path());
  store.add(EventRow{.kind = "ended"});
  store.commit();
  EXPECT_THAT(rows_of(store), ElementsAre("event started", "decision launch", R"(result {"a": 1})", "decision pause",
                                          "decision resume", "event ended"));
  EXPECT_EQ(store.info().trainable, "trainable");
}

TEST(ExperimentStore, WhatWasNotCommittedIsGone) {
  const TemporaryDirectory directory;
  {
    ExperimentStore store = ExperimentStore::create(directory.path(), {});
    store.add(EventRow{.kind = "first"});
    store.commit();
    store.add(EventRow{.kind = "second"});
  }
  EXPECT_THAT(rows_of(ExperimentStore::open(directory.path())), ElementsAre("event first"));
}

TEST(ExperimentStore, MetricsComeBackToTheByte) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  const std::string metrics = R"({"nan": NaN, "big": 9223372036854775807, "text": "\u0000"})";
  store.add(ResultRow{.trial = 4, .metrics = metrics});
  store.add(ResultRow{.trial = 4, .repeated = true, .metrics = "{}"});
  store.add(ResultRow{.trial = 5, .metrics = "{}"});
  store.commit();
  EXPECT_THAT(read_results(directory.path(), 4), ElementsAre(metrics));
}

TEST(ExperimentStore, SyncIsDueAfterACommitUntilItIsDone) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  EXPECT_FALSE(store.sync_due());
  store.add(EventRow{.kind = "x"});
  store.commit();
  EXPECT_TRUE(store.sync_due());
  store.sync();
  EXPECT_FALSE(store.sync_due());
}

TEST(ExperimentStore, AStoreIsNeverMadeOverAnother) {
  const TemporaryDirectory directory;
  ExperimentStore::create(directory.path(), {});
  EXPECT_THROW(ExperimentStore::create(directory.path(), {}), StorageError);
}

TEST(ExperimentStore, ANewerFormatIsRefused) {
  const TemporaryDirectory directory;
  ExperimentStore::create(directory.path(), {});
  Database(directory / "experiment.db", Database::Access::read_write)
      .execute("UPDATE meta SET value = '99' WHERE key = 'format'");
  try {
    ExperimentStore::open(directory.path());
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("format 99"));
  }
}

TEST(ExperimentStore, WhatIsNoStoreIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_THROW(ExperimentStore::open(directory.path()), NotFound);
  base::replace_file(directory / "experiment.db", std::string(10'000, 'x'));
  EXPECT_THROW(ExperimentStore::open(directory.path()), StorageError);
}

TEST(ExperimentLock, TheSecondHolderIsToldWhoIsFirst) {
  const TemporaryDirectory directory;
  const ExperimentLock first(directory.path());
  try {
    const ExperimentLock second(directory.path());
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("process " + std::to_string(getpid())));
  }
}

TEST(ExperimentLock, ItGoesWithItsHolder) {
  const TemporaryDirectory directory;
  {
    const ExperimentLock first(directory.path());
  }
  EXPECT_NO_THROW(ExperimentLock(directory.path()));
}

}  // namespace
}  // namespace cadre::store
