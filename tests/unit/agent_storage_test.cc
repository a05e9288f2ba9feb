#include "engine/cluster/agent_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/checksum.h"
#include "base/directory.h"
#include "base/file.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

// The storage is a directory; so is the node's own.
class AgentStorageTest : public testing::Test {
 protected:
  AgentStorageTest() {
    fs::create_directories(published);
    fs::create_directories(own / "trial/reported/deep");
    std::ofstream(own / "trial/reported/deep/model") << "weights";
    std::ofstream(own / "trial/reported/step") << "3";
  }

  // Waits for the next thing that is done.
  template <class What>
  What next() {
    for (const auto until = std::chrono::steady_clock::now() + 60s; done.empty(); std::this_thread::sleep_for(1ms)) {
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("nothing is done");
      for (AgentStorage::Done& one : storage->take_done()) done.push_back(std::move(one));
    }
    What what = std::get<What>(std::move(done.front()));
    done.pop_front();
    return what;
  }
  void begin() {
    storage.emplace(UseStorage{.uri = "file://" + published.string(), .file = "lease.json"}, own, [] {});
  }
  FilesStored stored(const std::string& place) {
    storage->store({.place = place, .name = "trial/stored"});
    return next<FilesStored>();
  }
  FilesLoaded loaded(const Dict& files) {
    storage->load({.place = "trial/loaded", .name = "trial/stored", .files = files});
    return next<FilesLoaded>();
  }

  test_support::TemporaryDirectory folder;
  const fs::path published = folder.path() / "published";
  const fs::path own = folder.path() / "own";
  std::optional<AgentStorage> storage = {};
  std::deque<AgentStorage::Done> done = {};
};

TEST_F(AgentStorageTest, TriesToReadAndToWriteAndLeavesNothing) {
  begin();
  EXPECT_THAT(next<TriedStorage>().fault, HasSubstr("it finds no lease.json there"));
  std::ofstream(published / "lease.json") << "of this run";
  begin();
  const auto tried = next<TriedStorage>();
  EXPECT_EQ(tried.fault, "");
  EXPECT_EQ(tried.uri, "file://" + published.string());
  EXPECT_EQ(tried.checksum, base::checksum_of("of this run"));
  EXPECT_THAT(base::list_directory(published), ElementsAre("lease.json"));
}

TEST_F(AgentStorageTest, AStorageThatCannotBeOpenedIsAFault) {
  storage.emplace(UseStorage{.uri = "gopher://nowhere", .file = "lease.json"}, own, [] {});
  EXPECT_THAT(next<TriedStorage>().fault, HasSubstr("gopher"));
}

TEST_F(AgentStorageTest, LoadsWhatItHasStored) {
  begin();
  next<TriedStorage>();
  const FilesStored stored_there = stored("trial/reported");
  EXPECT_EQ(stored_there.fault, "");
  EXPECT_EQ(base::read_file(published / "trial/stored/deep/model"), "weights");
  const Config list(stored_there.files);
  EXPECT_EQ(list.get<std::int64_t>("deep/model/size"), 7);
  EXPECT_EQ(list.get<std::string>("deep/model/xxh3").size(), 16U);
  fs::create_directories(own / "trial/loaded/of before");
  EXPECT_EQ(loaded(stored_there.files).fault, "");
  EXPECT_EQ(base::read_file(own / "trial/loaded/deep/model"), "weights");
  EXPECT_THAT(base::list_directory(own / "trial/loaded"), ElementsAre("deep", "step"));
}

TEST_F(AgentStorageTest, WhatIsDamagedOrMissingIsNotThere) {
  begin();
  next<TriedStorage>();
  const FilesStored stored_there = stored("trial/reported");
  std::ofstream(published / "trial/stored/deep/model") << "Weights";
  EXPECT_THAT(loaded(stored_there.files).fault, HasSubstr("has other contents than when it was written"));
  fs::remove(published / "trial/stored/deep/model");
  EXPECT_NE(loaded(stored_there.files).fault, "");
  EXPECT_THAT(loaded({{"../outside", Dict{{"size", 7}}}}).fault, HasSubstr("the controller")) << "it leads out";
  EXPECT_THAT(base::list_directory(own / "trial"), ElementsAre("reported")) << "nothing half is left";
  EXPECT_NE(stored("trial/missing").fault, "");
  EXPECT_THAT(stored("../own").fault, HasSubstr("is no path in a node's directory"));
}

TEST_F(AgentStorageTest, WhatThereIsNoThreadForIsAFaultThatMayPass) {
  const bool is_without = test_support::without_threads([&] {
    begin();
    EXPECT_THAT(next<TriedStorage>().fault, HasSubstr("cannot start a thread"));
    EXPECT_THAT(stored("trial/reported").fault, HasSubstr("cannot start a thread"));
    const FilesLoaded nothing = loaded({});
    EXPECT_THAT(nothing.fault, HasSubstr("cannot start a thread"));
    EXPECT_TRUE(nothing.may_pass);
  });
  if (!is_without) GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_EQ(stored("trial/reported").fault, "") << "now there is one";
}

TEST_F(AgentStorageTest, DoesManyThingsAtATimeAndCanBeGivenUp) {
  begin();
  next<TriedStorage>();
  for (int i = 0; i < 100; ++i) storage->store({.place = "trial/reported", .name = "trial/" + std::to_string(i)});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(next<FilesStored>().fault, "");
  storage.reset();
}

}  // namespace
}  // namespace cadre::engine::cluster
