// Stores that can be read and not written: another user's, on a read-only medium, in a snapshot.
#include "store/experiment_reader.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "cadre/error.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

namespace fs = std::filesystem;
using test_support::content_of;
using test_support::TemporaryDirectory;

// Runs `act` in a process that exits without its destructors.
void in_a_process(const std::function<void()>& act) {
  const pid_t process = ::fork();
  if (process == 0) {
    act();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
}

std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename()] = content_of(entry.path());
  return files;
}

class ReadOnlyStore : public testing::Test {
 protected:
  // Adds results in a controller that is then killed, so that they are in the log.
  void leave_log(int results) const {
    in_a_process([&] {
      std::optional<ExperimentStore> store;
      if (fs::exists(directory() / ExperimentStore::kFileName)) {
        store.emplace(ExperimentStore::open(directory()));
      } else {
        store.emplace(ExperimentStore::create(directory(), {"name", "trainable", "{}"}));
      }
      const ExperimentLock lock(directory());
      for (int i = 0; i < results; ++i) store->add(ResultRow{.metrics = "{}"});
      store->commit();
      ::_exit(0);
    });
    ASSERT_GT(fs::file_size(directory() / "experiment.db-wal"), 0u);
  }
  // Expects that a user who may read everything and write nothing can read so many results.
  void expect_readable(int results) const {
    const auto before = contents(directory());
    in_a_process([&] {
      if (::geteuid() == 0) {
        constexpr uid_t nobody = 65534;
        ASSERT_EQ(::setgroups(0, nullptr), 0);
        ASSERT_EQ(::setgid(nobody), 0);
        ASSERT_EQ(::setuid(nobody), 0);
      } else {
        fs::permissions(directory(), fs::perms::owner_read | fs::perms::owner_exec);
        for (const auto& entry : fs::directory_iterator(directory()))
          fs::permissions(entry.path(), fs::perms::owner_read);
      }
      try {
        for (const auto check : {ExperimentReader::Check::whole, ExperimentReader::Check::rows}) {
          const ExperimentReader reader(directory(), check);
          int count = 0;
          reader.visit({.result = [&](const ResultRow&) { ++count; },
                        .event = [](const EventRow&) {},
                        .decision = [](const DecisionRow&) {}});
          EXPECT_EQ(count, results);
        }
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    });
    fs::permissions(directory(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
    EXPECT_TRUE(contents(directory()) == before) << "reading has changed something";
  }
  const fs::path& directory() const { return directory_.path(); }

 private:
  void SetUp() override {
    fs::permissions(directory(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  }
  TemporaryDirectory directory_;
};

TEST_F(ReadOnlyStore, OfAnExperimentThatHasEndedIsRead) {
  {
    ExperimentStore store = ExperimentStore::create(directory(), {"name", "trainable", "{}"});
    const ExperimentLock lock(directory());
    store.add(ResultRow{.metrics = "{}"});
    store.finish();
  }
  expect_readable(1);
}

TEST_F(ReadOnlyStore, OfAKilledControllerIsReadWithItsLog) {
  leave_log(3);
  expect_readable(3);
}

TEST_F(ReadOnlyStore, InASnapshotWithoutTheLogsIndexIsRead) {
  leave_log(2);
  fs::remove(directory() / "experiment.db-shm");
  expect_readable(2);
}

TEST_F(ReadOnlyStore, WithoutALockFileIsRead) {
  leave_log(2);
  fs::remove(directory() / ExperimentLock::kFileName);
  expect_readable(2);
}

TEST_F(ReadOnlyStore, WhileItsControllerRunsIsRead) {
  ExperimentStore store = ExperimentStore::create(directory(), {"name", "trainable", "{}"});
  const ExperimentLock lock(directory());
  for (int i = 1; i <= 3; ++i) {
    store.add(ResultRow{.metrics = "{}"});
    store.commit();
    in_a_process([&] {
      if (::geteuid() == 0) {
        ASSERT_EQ(::setgid(65534), 0);
        ASSERT_EQ(::setuid(65534), 0);
      }
      try {
        const ExperimentReader reader(directory(), ExperimentReader::Check::whole);
        EXPECT_TRUE(reader.controller());
        int count = 0;
        reader.visit({.result = [&](const ResultRow&) { ++count; },
                      .event = [](const EventRow&) {},
                      .decision = [](const DecisionRow&) {}});
        EXPECT_EQ(count, i);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
}

}  // namespace
}  // namespace cadre::store
