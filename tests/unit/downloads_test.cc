#include "engine/cluster/downloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

TEST(Downloads, OneForWhichThereIsNoThreadMayBeTriedAgain) {
  const test_support::TemporaryDirectory folder;
  const fs::path run = folder.path() / "run";
  const fs::path published = folder.path() / "published";
  fs::create_directories(run);
  fs::create_directories(published / "checkpoint");
  std::ofstream(published / "checkpoint/model") << "weights";
  storage::write_published_to(run, {.scheme = "file", .location = published.string()});
  storage::make_remote(run / "checkpoint", {.files = {{"model", Dict{{"size", 7}}}}, .place = "checkpoint"});

  std::atomic<int> woken = 0;
  Downloads downloads(run, [&] { ++woken; });
  if (!test_support::without_threads([&] { downloads.begin("checkpoint"); }))
    GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_EQ(woken, 1);
  std::vector<Downloads::Done> done = downloads.take_done();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done.front().place, "checkpoint");
  EXPECT_THAT(done.front().fault, HasSubstr("no thread can be started"));
  EXPECT_TRUE(done.front().may_pass);

  downloads.begin("checkpoint");
  done.clear();
  for (const auto until = std::chrono::steady_clock::now() + 30s; done.empty(); std::this_thread::sleep_for(1ms)) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    done = downloads.take_done();
  }
  EXPECT_EQ(done.front().fault, "");
  EXPECT_EQ(base::read_file(run / "checkpoint/model"), "weights");
}

}  // namespace
}  // namespace cadre::engine::cluster
