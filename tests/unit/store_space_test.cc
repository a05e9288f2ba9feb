// A store's content after a failed write, at any point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/error.h"
#include "store/experiment_store.h"
#include "support/failing_disk.h"
#include "support/message_of.h"
#include "support/store_content.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using cadre::test_support::content_of_store;
using cadre::test_support::FailingDisk;
using cadre::test_support::TemporaryDirectory;

using ::testing::HasSubstr;

// Adds a transaction of many pages.
void add_transaction(ExperimentStore& store) {
  const std::int64_t cause = store.add(EventRow{.kind = "worker_ended", .data = std::string(20'000, 'e')});
  store.add(DecisionRow{.cause = cause, .kind = "end", .trial = 1, .data = std::string(9'000, 'd')});
  store.add(ResultRow{.trial = 1, .metrics = std::string(9'000, 'm')});
  store.put(TrialRow{.trial = 1, .status = "RUNNING"});
  store.add(CheckpointRow{.id = cause, .trial = 1, .directory = "trial/checkpoint"});
  store.put_snapshot(cause, std::string(30'000, 's'));
  store.commit();
}

// Returns the content after a kill at this moment.
std::string content_after_kill(const TemporaryDirectory& directory) {
  const TemporaryDirectory copy;
  for (const char* name : {"experiment.db", "experiment.db-wal"})
    std::filesystem::copy_file(directory / name, copy / name);
  return content_of_store(ExperimentStore::open(copy.path()));
}

class StoreSpace : public testing::Test {
 protected:
  void SetUp() override {
    if (!FailingDisk::is_possible()) GTEST_SKIP() << "this SQLite writes in another way";
  }
};

TEST_F(StoreSpace, AfterAWriteThatFailsTheSameRowsCanBeCommittedAgain) {
  for (int writes_left = 0;; ++writes_left) {
    const TemporaryDirectory directory;
    ExperimentStore store = ExperimentStore::create(directory.path(), {"name", "trainable", "{}"});
    add_transaction(store);
    const std::string before = content_of_store(store);
    bool failed = false;
    {
      const FailingDisk disk(writes_left, ENOSPC);
      EXPECT_NO_THROW(try { add_transaction(store); } catch (const OutOfSpace&) { failed = true; });
      ASSERT_EQ(failed, disk.has_failed());
    }
    if (!failed) {
      EXPECT_GT(writes_left, 20);
      return;
    }
    ASSERT_EQ(content_of_store(store), before);
    ASSERT_EQ(content_after_kill(directory), before);
    store.add(EventRow{.kind = "small"});  // shorter than the failed transaction, whose rest stays after it in the log
    store.commit();
    const std::string small = content_of_store(store);
    ASSERT_EQ(content_after_kill(directory), small);
    add_transaction(store);
    const std::string after = content_of_store(store);
    EXPECT_THAT(after, HasSubstr("small"));
    EXPECT_NE(after, small);
    ASSERT_EQ(content_after_kill(directory), after);
  }
}

TEST_F(StoreSpace, AQuotaIsOutOfSpaceAndABrokenDiskIsNot) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  {
    const FailingDisk disk(0, EDQUOT);
    EXPECT_THROW(add_transaction(store), OutOfSpace);
  }
  const FailingDisk disk(0, EIO);
  try {
    add_transaction(store);
    FAIL();
  } catch (const OutOfSpace&) {
    FAIL() << "a broken disk is not a full one";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr((directory / "experiment.db").string()));
  }
}

TEST_F(StoreSpace, ATransactionThatFailsAtItsLastRowIsGoneAsAWhole) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {});
  const std::string before = content_of_store(store);
  store.add(EventRow{.kind = "first"});
  store.add(CheckpointRow{.id = 7, .directory = "trial/checkpoint"});
  EXPECT_THROW(store.add(CheckpointRow{.id = 7, .directory = "trial/checkpoint"}),
               StorageError);  // ids are unique
  EXPECT_EQ(content_of_store(store), before);
  store.commit();
  EXPECT_EQ(content_of_store(store), before);
  EXPECT_EQ(store.add(EventRow{.kind = "first"}), 1);
  store.commit();
}

TEST_F(StoreSpace, WhereThereIsNoSpaceForAStoreNothingIsLeftOfIt) {
  for (int writes_left = 0;; ++writes_left) {
    const TemporaryDirectory directory;
    bool failed = false;
    {
      const FailingDisk disk(writes_left, ENOSPC);
      EXPECT_NO_THROW(
          try { ExperimentStore::create(directory.path(), {}); } catch (const OutOfSpace&) { failed = true; });
    }
    if (!failed) {
      EXPECT_GT(writes_left, 0);
      return;
    }
    EXPECT_FALSE(std::filesystem::exists(directory / "experiment.db"));
    EXPECT_NO_THROW(ExperimentStore::create(directory.path(), {}));
  }
}

TEST_F(StoreSpace, OpeningOnAFullDiskLosesNothing) {
  const TemporaryDirectory written;
  ExperimentStore store = ExperimentStore::create(written.path(), {});
  add_transaction(store);
  for (int writes_left = 0;; ++writes_left) {
    const TemporaryDirectory directory;
    for (const char* name : {"experiment.db", "experiment.db-wal"})
      std::filesystem::copy_file(written / name, directory / name);
    bool failed = false;
    {
      const FailingDisk disk(writes_left, ENOSPC);
      EXPECT_NO_THROW(try { ExperimentStore::open(directory.path()); } catch (const OutOfSpace&) { failed = true; });
    }
    ASSERT_EQ(content_of_store(ExperimentStore::open(directory.path())), content_of_store(store));
    if (!failed) {
      EXPECT_GT(writes_left, 0);
      return;
    }
  }
}

}  // namespace
}  // namespace cadre::store
