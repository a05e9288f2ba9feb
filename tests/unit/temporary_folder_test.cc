#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/directory.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// TMPDIR is the test's own directory.
class TemporaryFolderTest : public ::testing::Test {
 protected:
  std::vector<std::string> names() const { return list_directory(parent_.path()); }

  // Makes a folder in a process that is killed before it can remove it. Returns the folder's name.
  std::string make_in_killed_process() const {
    const pid_t child = ::fork();
    if (child == 0) {
      const TemporaryFolder folder("cadre-test");
      fs::create_directories(folder.path() / "worker_1");
      std::ofstream(folder.path() / "worker_1" / "stderr") << "about to die\n";
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    return names().front();
  }

  test_support::TemporaryDirectory parent_;
  const test_support::TemporaryFilesIn here_{parent_};
};

TEST_F(TemporaryFolderTest, GoesWithItsContent) {
  {
    const TemporaryFolder folder("cadre-test");
    std::ofstream(folder.path() / "file") << "x";
    EXPECT_TRUE(fs::is_directory(folder.path()));
    EXPECT_EQ(folder.path().parent_path(), parent_.path());
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(TemporaryFolderTest, ThatAKilledProcessHasLeftGoesWhenTheNextOneIsMade) {
  const std::string left = make_in_killed_process();
  EXPECT_TRUE(fs::exists(parent_.path() / left / "worker_1" / "stderr"));
  const TemporaryFolder folder("cadre-test");
  EXPECT_THAT(names(), ElementsAre(folder.path().filename().string()));
}

TEST_F(TemporaryFolderTest, IsInAnotherFolderThanTheSystemsIfThatIsGiven) {
  const fs::path other = parent_.path() / "other";
  fs::create_directories(other / ".restoring-abcdef" / "left");
  fs::create_directories(parent_.path() / ".restoring-abcdef");
  {
    const TemporaryFolder folder(other, ".restoring");
    EXPECT_THAT(list_directory(other), ElementsAre(folder.path().filename().string()));
  }
  EXPECT_THAT(list_directory(other), IsEmpty());
  EXPECT_THAT(names(), ElementsAre(".restoring-abcdef", "other"));
}

TEST_F(TemporaryFolderTest, StaysWhileItIsHeld) {
  const TemporaryFolder here("cadre-test");
  const TemporaryFolder beside("cadre-test");
  make_in_killed_process();  // another process, which removes folders that are no longer held
  EXPECT_TRUE(fs::exists(here.path()));
  EXPECT_TRUE(fs::exists(beside.path()));
}

TEST_F(TemporaryFolderTest, LeavesWhatIsNotOfItsPurpose) {
  fs::create_directories(parent_.path() / "cadre-test-of-mine");
  fs::create_directories(parent_.path() / "cadre-other-abcdef");
  fs::create_directories(parent_.path() / "elsewhere");
  fs::create_directory_symlink(parent_.path() / "elsewhere", parent_.path() / "cadre-test-abcdef");
  std::ofstream(parent_.path() / "cadre-test-file12") << "x";
  {
    const TemporaryFolder folder("cadre-test");
  }
  EXPECT_THAT(names(), ElementsAre("cadre-other-abcdef", "cadre-test-abcdef", "cadre-test-file12", "cadre-test-of-mine",
                                   "elsewhere"));
}

TEST_F(TemporaryFolderTest, IsMadeByManyAtATime) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int time = 0; time < 200; ++time) {
        const TemporaryFolder folder("cadre-test");
        std::ofstream(folder.path() / "file") << "x";
        EXPECT_TRUE(fs::exists(folder.path() / "file"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(TemporaryFolderTest, InAFolderThatIsNotThereIsAnErrorThatNamesIt) {
  const std::string missing = parent_.path() / "missing";
  ::setenv("TMPDIR", missing.c_str(), 1);
  EXPECT_THAT(test_support::message_of<StorageError>([] { const TemporaryFolder folder("cadre-test"); }),
              AllOf(HasSubstr("(TMPDIR=" + missing + "): "), HasSubstr("; set TMPDIR")));
}

}  // namespace
}  // namespace cadre::base
