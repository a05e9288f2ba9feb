#include "store/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "cadre/error.h"
#include "store/read_store.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;

const Tenant& kTenant = training_run_tenant;

// Names that are deleted in a directory, in order.
class Deletions {
 public:
  explicit Deletions(const fs::path& directory) : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    ::inotify_add_watch(events_.get(), directory.c_str(), IN_DELETE);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    alignas(inotify_event) char buffer[16384];
    for (ssize_t size = 0; (size = ::read(events_.get(), buffer, sizeof buffer)) > 0;) {
      for (const char* at = buffer; at < buffer + size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        if (event->mask & IN_DELETE) names.emplace_back(event->name);
        at += sizeof(inotify_event) + event->len;
      }
    }
    return names;
  }

 private:
  base::FileDescriptor events_;
};

TEST(RunDirectory, HoldsAStoreIfItHasTheFile) {
  const test_support::TemporaryDirectory directory;
  EXPECT_FALSE(has_store(directory.path()));
  std::ofstream(directory / "experiment.db").close();
  EXPECT_TRUE(has_store(directory.path()));
  EXPECT_FALSE(has_store(directory / "experiment.db"));
}

TEST(RunDirectory, IsRemovedWithItsStoreAtLast) {
  const test_support::TemporaryDirectory storage;
  const fs::path run = storage / "run";
  fs::create_directories(run / "rank_0");
  for (const char* name :
       {".lock", "experiment.db", "experiment.db-wal", "params.json", "result.json", "rank_0/stdout"})
    std::ofstream(run / name) << "x";
  const Deletions deletions(run);
  remove_with_store(run);
  const std::vector<std::string> names = deletions.names();
  EXPECT_THAT(names, Contains("rank_0"));
  ASSERT_EQ(names.size(), 6U);
  EXPECT_EQ(names.back(), "experiment.db");
  EXPECT_FALSE(fs::exists(run));
}

TEST(RunDirectory, IsMadeWhereAControllerWasKilledBeforeThereWasAStore) {
  const test_support::TemporaryDirectory storage;
  for (const char* left : {"", ".lock", "published_to.json", "published_to.json.tmp", "experiment.db.new"}) {
    const fs::path run = storage / (std::string("run") + left);
    fs::create_directories(run);
    if (*left != 0) std::ofstream(run / left) << "x";
    EXPECT_NO_THROW(make_new_directory(run, kTenant));
  }
}

TEST(RunDirectory, AFreeOneIsMadeByWhoeverGetsItsName) {
  const test_support::TemporaryDirectory storage;
  fs::create_directories(storage / "mine");
  std::ofstream(storage / "mine_2") << "a file";
  const auto is_taken = [](const std::string& name) { return name == "mine_3"; };
  EXPECT_EQ(make_free_directory(storage.path(), "mine", is_taken), storage / "mine_4");
  EXPECT_EQ(make_free_directory(storage.path(), "mine", is_taken), storage / "mine_5");
  EXPECT_EQ(make_free_directory(storage / "new", "other", is_taken), storage / "new" / "other");
  EXPECT_TRUE(fs::is_directory(storage / "new" / "other"));
}

TEST(RunDirectory, OfSomebodyElseIsRefused) {
  const test_support::TemporaryDirectory storage;
  for (const char* name : {"notes.txt", "published_to.json.mine"}) {
    const fs::path run = storage / (std::string("run_") + name);
    fs::create_directories(run);
    std::ofstream(run / name) << "mine";
    EXPECT_THROW(make_new_directory(run, kTenant), InvalidArgument) << name;
  }
}

}  // namespace
}  // namespace cadre::store
