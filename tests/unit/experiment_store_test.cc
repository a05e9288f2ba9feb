#include "store/experiment_store.h"
#include "base/directory.h"
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/machine.h"
#include "cadre/error.h"
#include "store/experiment_lock.h"
#include "store/experiment_reader.h"
#include "support/message_of.h"
#include "support/stored_results.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::results_of;
using cadre::test_support::TemporaryDirectory;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the rows after a sequence number as text, in the order in which they are visited.
std::vector<std::string> rows_of(const ExperimentStore& store, std::int64_t after = 0) {
  std::vector<std::string> rows;
  store.visit({.result = [&](const ResultRow& row) { rows.push_back("result " + row.metrics); },
               .event = [&](const EventRow& row) { rows.push_back("event " + row.kind); },
               .decision = [&](const DecisionRow& row) { rows.push_back("decision " + row.kind); }},
              after);
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
  EXPECT_THAT(results_of(directory.path(), 4), ElementsAre(metrics));
}

TEST(ExperimentStore, ATrialsResultsAreReadAsWellAfterTheEndAndWhenTheExperimentGoesOn) {
  const TemporaryDirectory directory;
  {
    ExperimentStore store = ExperimentStore::create(directory.path(), {});
    store.put(TrialRow{.trial = 6});
    for (const char* metrics : {"1", "2"}) store.add(ResultRow{.trial = 4, .metrics = metrics});
    store.add(ResultRow{.trial = 4, .repeated = true, .metrics = "2"});
    store.add(ResultRow{.trial = 5, .metrics = "9"});
    store.finish();
    EXPECT_THAT(results_of(directory.path(), 4), ElementsAre("1", "2"));
  }
  EXPECT_THAT(results_of(directory.path(), 4), ElementsAre("1", "2"));
  EXPECT_THAT(results_of(directory.path(), 6), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory / "experiment.db-wal"));
  ExperimentStore store = ExperimentStore::open(directory.path());
  store.add(ResultRow{.trial = 4, .metrics = "3"});
  store.commit();
  EXPECT_THAT(results_of(directory.path(), 4), ElementsAre("1", "2", "3"));
}

bool is_finished(const TemporaryDirectory& directory) {
  return ExperimentReader(directory.path(), ExperimentReader::Check::whole).finished();
}

TEST(ExperimentStore, WhatHasFinishedIsFinishedUntilTheNextRowIsCommitted) {
  const TemporaryDirectory directory;
  {
    ExperimentStore store = ExperimentStore::create(directory.path(), {});
    store.add(EventRow{.kind = "started"});
    store.commit();
    EXPECT_FALSE(is_finished(directory));
    store.finish();
  }
  EXPECT_TRUE(is_finished(directory));
  {
    ExperimentStore store = ExperimentStore::open(directory.path());
    EXPECT_TRUE(is_finished(directory)) << "who opens it may go again";
    store.add(EventRow{.kind = "started"});
    store.roll_back();
    EXPECT_TRUE(is_finished(directory));
    store.add(ResultRow{.metrics = "{}"});
    store.commit();
    EXPECT_FALSE(is_finished(directory));
    store.finish();
  }
  EXPECT_TRUE(is_finished(directory));
  ExperimentStore store = ExperimentStore::open(directory.path());
  store.add(EventRow{.kind = "started"});
  store.commit();
  EXPECT_FALSE(is_finished(directory));
}

TEST(ExperimentStore, ALargeTransactionIsCopiedFromTheLogIntoTheDatabaseSoon) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  constexpr std::size_t bytes = std::size_t{8} << 20;
  store.put_snapshot(1, std::string(bytes, 's'));
  store.commit();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::filesystem::file_size(directory / "experiment.db") < bytes) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST(ExperimentStore, ReadsOnFromASequenceNumber) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  for (int i = 1; i <= 20; ++i) {
    const std::int64_t cause = i % 2 == 0 ? store.add(ResultRow{.metrics = std::to_string(i)})
                                          : store.add(EventRow{.kind = std::to_string(i)});
    for (int j = 0; j < i % 4; ++j) store.add(DecisionRow{.cause = cause, .kind = std::to_string(i)});
  }
  const std::vector<std::string> all = rows_of(store);
  for (int after = 0; after <= 21; ++after) {
    std::vector<std::string> expected;
    for (const std::string& row : all) {
      if (std::stoi(row.substr(row.find(' '))) > after) expected.push_back(row);
    }
    EXPECT_EQ(rows_of(store, after), expected) << after;
  }
}

TEST(ExperimentStore, ACheckpointIsOfItsBootUntilItIsSynced) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  store.add(CheckpointRow{.id = 8, .trial = 1, .step = 3, .directory = "b"});
  store.add(CheckpointRow{.id = 7, .trial = 2, .step = 4, .directory = "a", .boot = "another"});
  store.set_checkpoint_synced(7, R"({"file": 1})");
  store.set_checkpoint_synced(9, "{}");  // removed already
  store.commit();
  const std::vector<CheckpointRow> rows = store.checkpoints();
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].id, 7);
  EXPECT_EQ(rows[0].trial, 2);
  EXPECT_EQ(rows[0].step, 4);
  EXPECT_EQ(rows[0].directory, "a");
  EXPECT_EQ(rows[0].boot, "another");
  EXPECT_TRUE(rows[0].synced);
  EXPECT_EQ(rows[0].manifest, R"({"file": 1})");
  EXPECT_EQ(rows[1].id, 8);
  EXPECT_EQ(rows[1].boot, base::boot_id());
  EXPECT_FALSE(rows[1].synced);
  EXPECT_EQ(rows[1].manifest, "");
}

TEST(ExperimentStore, TheNewestSnapshotIsKept) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  EXPECT_FALSE(store.last_snapshot());
  for (const std::int64_t sequence : {10, 20, 30}) store.put_snapshot(sequence, "state " + std::to_string(sequence));
  store.commit();
  EXPECT_EQ(store.last_snapshot()->sequence, 30);
  EXPECT_EQ(store.last_snapshot()->state, "state 30");
  const Database database(directory / "experiment.db", Database::Access::read_write);
  Statement count(database, "SELECT count(*) FROM snapshots");
  EXPECT_TRUE(count.step());
  EXPECT_EQ(count.integer(0), 1);
}

TEST(ExperimentStore, EndedTrialsAreReadInOrderUntilTheyGoOnOrTheSnapshotIsForgotten) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  for (const std::int64_t trial : {7, 2, 5}) store.put(EndedTrialRow{trial, "state " + std::to_string(trial)});
  store.put(EndedTrialRow{7, "later"});
  store.remove_ended_trial(5);
  store.put_snapshot(1, "state");
  store.commit();
  EndedTrials ended = store.ended_trials();
  EXPECT_EQ(ended.next(2), "state 2");
  EXPECT_EQ(ended.next(7), "later");
  EXPECT_THROW(ended.next(8), StorageError);
  EXPECT_THROW(store.ended_trials().next(5), StorageError);

  store.remove_snapshot();
  store.commit();
  EXPECT_FALSE(store.last_snapshot());
  EXPECT_THROW(store.ended_trials().next(2), StorageError);
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

TEST(ExperimentStore, AKilledCreationIsNoStoreAndIsNotInTheWay) {
  const TemporaryDirectory directory;
  for (const char* end : {"", "-wal", "-shm"})
    base::replace_file(directory / (std::string("experiment.db.new") + end), "half");
  EXPECT_THROW(ExperimentStore::open(directory.path()), NotFound);
  ExperimentStore::create(directory.path(), {.name = "whole"});
  EXPECT_EQ(ExperimentStore::open(directory.path()).info().name, "whole");
  EXPECT_THAT(base::list_directory(directory.path()), ElementsAre("experiment.db"));
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

void add_and_commit(ExperimentStore& store) {
  store.add(EventRow{.kind = "one"});
  store.commit();
}

TEST(ExperimentStore, ThatWasRemovedOrReplacedIsNoticedAtTheNextSync) {
  const auto remove = [](const std::filesystem::path& path) { std::filesystem::remove(path); };
  const auto replace = [](const std::filesystem::path& path) {
    std::filesystem::copy_file(path, path.string() + ".copy");
    std::filesystem::rename(path.string() + ".copy", path);
  };
  for (const char* name : {"experiment.db", "experiment.db-wal"}) {
    for (const std::function<void(const std::filesystem::path&)>& act :
         {std::function(remove), std::function(replace)}) {
      const TemporaryDirectory directory;
      ExperimentStore store = ExperimentStore::create(directory.path(), {});
      add_and_commit(store);
      store.sync();
      act(directory / name);
      add_and_commit(store);
      EXPECT_THAT(message_of<StorageError>([&] { store.sync(); }), HasSubstr("removed, moved or replaced"));
      EXPECT_TRUE(store.sync_due()) << "nothing is called saved";
    }
  }
}

TEST(ExperimentStore, OfTwoWritersTheFirstEnds) {
  const TemporaryDirectory directory;
  ExperimentStore first = ExperimentStore::create(directory.path(), {});
  add_and_commit(first);
  ExperimentStore second = ExperimentStore::open(directory.path());  // after the lock file was removed
  add_and_commit(second);
  EXPECT_THAT(message_of<StorageError>([&] { add_and_commit(first); }), HasSubstr("another controller"));
  add_and_commit(second);
  EXPECT_THAT(message_of<StorageError>([&] { add_and_commit(first); }), HasSubstr("another controller"));
  EXPECT_EQ(rows_of(second).size(), 3u);
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

// SQLite opens the database by a URI, in which these characters have a meaning.
TEST(Database, IsReadAsOneThatNobodyWritesWhateverTheNamesOfItsFoldersAre) {
  const TemporaryDirectory directory;
  const std::filesystem::path folder = directory / "a b?c#d%25&\xc3\xa9";
  std::filesystem::create_directory(folder);
  Database(folder / "store", Database::Access::create).execute("CREATE TABLE t(x); INSERT INTO t VALUES(7)");
  const Database database(folder / "store", Database::Access::immutable);
  Statement statement(database, "SELECT x FROM t");
  ASSERT_TRUE(statement.step());
  EXPECT_EQ(statement.integer(0), 7);
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
