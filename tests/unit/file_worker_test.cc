#include "checkpoint/file_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/file.h"
#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"
#include "support/temporary_directory.h"

namespace cadre::checkpoint {
namespace {

using cadre::test_support::TemporaryDirectory;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Clock = std::chrono::steady_clock;

class FileWorkerTest : public ::testing::Test {
 protected:
  std::filesystem::path make_checkpoint(const std::string& name) {
    base::make_directories(directory_ / "trial/" / name);
    base::replace_file(directory_ / "trial/" / name / "weights", "12345678");
    return "trial/" + name;
  }

  void wake() {
    const std::lock_guard lock(mutex_);
    wakes_.push_back(Clock::now());
    woken_.notify_all();
  }
  // Returns the times of the worker's wake-ups, as soon as there are `number` of them.
  std::vector<Clock::time_point> wait_for_wakes(std::size_t number) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(woken_.wait_for(lock, std::chrono::seconds(30), [&] { return wakes_.size() >= number; }));
    return wakes_;
  }

  const TemporaryDirectory directory_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<Clock::time_point> wakes_;
  FileWorker worker_{directory_.path(), {}, [this] { wake(); }};
};

TEST_F(FileWorkerTest, EveryCheckpointHasItsOwnDelayAndIsToldWhenItIsSealed) {
  worker_.seal(1, make_checkpoint("first"));
  const std::filesystem::path second = make_checkpoint("second");
  std::this_thread::sleep_for(FileWorker::seal_delay / 2);  // no synchronisation: the second one must only come later
  const Clock::time_point came = Clock::now();
  worker_.seal(2, second);
  const std::vector<Clock::time_point> wakes = wait_for_wakes(2);
  EXPECT_GE(wakes[1] - came, FileWorker::seal_delay);
  const auto sealed = worker_.take_sealed();
  ASSERT_THAT(sealed, SizeIs(2));
  EXPECT_EQ(sealed[0].id, 1);
  EXPECT_EQ(sealed[1].id, 2);
  EXPECT_EQ(Config(sealed[1].files).get<std::int64_t>("weights/size"), 8);
  EXPECT_THAT(worker_.take_errors(), IsEmpty());
}

TEST_F(FileWorkerTest, ACheckpointThatIsDeletedBeforeIsNotSealed) {
  worker_.seal(1, make_checkpoint("first"));
  worker_.seal(2, make_checkpoint("second"));
  worker_.remove(1, "trial/first");
  worker_.finish_sealing();
  const auto sealed = worker_.take_sealed();
  ASSERT_THAT(sealed, SizeIs(1));
  EXPECT_EQ(sealed[0].id, 2);
}

// Nested directories whose path is longer than a path may be, so that stat of the last one fails.
class EndlessPath {
 public:
  explicit EndlessPath(const std::filesystem::path& directory) {
    parents_.emplace_back(::open(directory.c_str(), O_DIRECTORY | O_PATH));
    for (std::size_t bytes = directory.string().size(); bytes < PATH_MAX; bytes += name_.size() + 1) {
      EXPECT_EQ(::mkdirat(parents_.back().get(), name_.c_str(), 0777), 0);
      parents_.emplace_back(::openat(parents_.back().get(), name_.c_str(), O_DIRECTORY | O_PATH));
    }
  }
  ~EndlessPath() {
    for (parents_.pop_back(); !parents_.empty(); parents_.pop_back())
      ::unlinkat(parents_.back().get(), name_.c_str(), AT_REMOVEDIR);
  }

 private:
  const std::string name_ = std::string(200, 'd');
  std::vector<base::FileDescriptor> parents_;
};

TEST_F(FileWorkerTest, WhatCannotBeReadIsAMessageAndNotTheEnd) {
  worker_.seal(1, make_checkpoint("good"));
  worker_.seal(2, "trial/gone");
  const std::filesystem::path deep = make_checkpoint("deep");
  const EndlessPath path(directory_ / deep.string());
  worker_.seal(3, deep);
  worker_.finish_sealing();
  EXPECT_THAT(worker_.take_sealed(), SizeIs(1));
  EXPECT_THAT(worker_.take_errors(), ElementsAre(HasSubstr("trial/gone"), HasSubstr("File name too long")));
}

TEST_F(FileWorkerTest, FollowsNoLinkToWhatItDeletes) {
  const TemporaryDirectory elsewhere;
  std::filesystem::create_directories(elsewhere / "first");
  std::filesystem::create_symlink(elsewhere.path(), directory_ / "trial");
  worker_.remove("trial/first");
  wait_for_wakes(1);
  EXPECT_THAT(worker_.take_errors(), ElementsAre(HasSubstr("a link lies on its way")));
  EXPECT_TRUE(std::filesystem::exists(elsewhere / "first"));
}

TEST_F(FileWorkerTest, DeletesADirectoryOfTheUsersByItsWholePath) {
  const TemporaryDirectory elsewhere;
  std::filesystem::create_directories(elsewhere / "mine");
  worker_.remove(elsewhere / "mine");
  while (!worker_.deletions().empty()) std::this_thread::yield();
  EXPECT_FALSE(std::filesystem::exists(elsewhere / "mine"));
}

TEST(FileWorkerEnd, TriesADeletionThatFailedOnceMore) {
  const TemporaryDirectory directory;
  const std::filesystem::path trial = directory / "trial";
  std::filesystem::create_symlink(trial, trial);  // a loop: nothing in it can be read
  {
    FileWorker worker(directory.path(), {}, [] {});
    worker.remove("trial/checkpoint");
    while (worker.take_errors().empty()) std::this_thread::yield();
    EXPECT_THAT(worker.deletions(), ElementsAre("trial/checkpoint"));
    std::filesystem::remove(trial);
    std::filesystem::create_directories(trial / "checkpoint");
  }
  EXPECT_THAT(base::list_directory(trial), IsEmpty());
}

// A leftover of a process that was killed looks like what another one is about to finish.
TEST_F(FileWorkerTest, LeavesAloneWhatAnotherProcessDownloads) {
  constexpr int kFiles = 300;
  const TemporaryDirectory published;
  Dict files;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = fmt::format("weights_{}", i);
    base::make_directories(published / "trial/first");
    base::replace_file(published / "trial/first" / name, "12345678");
    files.emplace_back(name, Dict{{"size", 8}});
  }
  storage::write_published_to(directory_.path(), storage::parse_uri("file://" + published.path().string()));
  const std::filesystem::path checkpoint = directory_ / "trial/first";
  storage::make_remote(checkpoint, {.files = files});
  base::make_directories(directory_ / "trial/.reporting_fetch_1_first");
  const pid_t fetcher = ::fork();
  if (fetcher == 0) {
    try {
      storage::fetch(checkpoint);
      ::_exit(0);
    } catch (const std::exception& error) {
      ::_exit(1);
    }
  }
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(fetcher), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
    for (const std::string& name : base::list_directory(directory_ / "trial"))
      if (is_reporting_name(name)) worker_.remove("trial/" + name);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int status = 0;
  ::waitpid(fetcher, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fault_of_files(checkpoint, files, false), "");
  worker_.remove("trial/.reporting_fetch_1_first");
  for (int i = 0; i < 10'000 && !worker_.deletions().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(base::list_directory(directory_ / "trial"), ElementsAre("first"));
  EXPECT_THAT(worker_.take_errors(), IsEmpty());
}

TEST_F(FileWorkerTest, RemovesALeftoverInWhichAPipeIsInTheListsPlace) {
  base::make_directories(directory_ / "trial/.reporting_fetch_1_first");
  ASSERT_EQ(::mkfifo((directory_ / "trial/.reporting_fetch_1_first/.remote.json").c_str(), 0600), 0);
  worker_.remove("trial/.reporting_fetch_1_first");
  for (int i = 0; i < 10'000 && !worker_.deletions().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(base::list_directory(directory_ / "trial"), IsEmpty());
}

}  // namespace
}  // namespace cadre::checkpoint
