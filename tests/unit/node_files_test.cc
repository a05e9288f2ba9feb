// Parts of checkpoints in directories of nodes: from the report to what the nodes keep.
#include "train/node_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"
#include "train/checkpoints.h"

namespace cadre::train {
namespace {

using engine::NodeId;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = CheckpointPart::Kind;
using NodeAndNames = std::tuple<NodeId, std::string, std::string>;

// Notes what it is told.
class NotingEngine final : public engine::Engine {
 public:
  Resources resources() const override { return {}; }
  bool carries_files() const override { return true; }
  void fetch(NodeId node, const std::string& from, const std::string& to) override {
    fetches.emplace_back(node, from, to);
  }
  void keep_fetched(NodeId node, const std::string& from, const std::string& name) override {
    kept.emplace_back(node, from, name);
  }
  void reply(engine::WorkerId, const channel::Reply&) override {}
  void start(engine::WorkerId, const engine::WorkerSpec&) override {}
  void answer(engine::WorkerId, const channel::Answer&) override {}
  void reply(engine::WorkerId, const channel::StoreReply&) override {}
  void kill(engine::WorkerId) override {}
  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds>) override { return {}; }
  void wake() noexcept override {}
  Clock::time_point now() const override { return {}; }
  double wall_seconds() const override { return 0; }

  std::vector<NodeAndNames> fetches;
  std::vector<NodeAndNames> kept;
};

class NodeFilesTest : public ::testing::Test {
 protected:
  // Reports a checkpoint, and passes on what is to be fetched.
  void report(std::vector<CheckpointPart> parts) {
    checkpoints.report({.step = ++steps, .checkpoint = {.parts = std::move(parts), .upload = true}}, actions);
    pass_on();
  }
  // Lets something arrive, or not, if it has a fault.
  void arrives(NodeId node, const std::string& from, const std::string& fault = "") {
    const std::optional<Event> event = files.arrived({node, from, fault});
    if (!event) return;
    if (const auto* uploaded = std::get_if<CheckpointUploaded>(&*event)) checkpoints.uploaded(*uploaded, actions);
    if (const auto* failed = std::get_if<UploadFailed>(&*event))
      failure = checkpoints.upload_failed(*failed, true, actions);
    checkpoints.commit_ready(actions);
    pass_on();
  }
  void pass_on() {
    for (const Action& action : std::exchange(actions, {})) {
      if (const auto* upload = std::get_if<UploadCheckpoint>(&action)) EXPECT_TRUE(files.fetch(*upload));
      if (const auto* commit = std::get_if<CommitCheckpoint>(&action)) {
        commits.push_back(*commit);
        files.committed(*commit);
      }
      if (const auto* removed = std::get_if<RemoveDirectory>(&action)) removals.push_back(removed->path);
    }
  }

  test_support::TemporaryDirectory directory;
  NotingEngine engine;
  NodeFiles files{directory.path(), engine};
  Actions actions;
  Checkpoints checkpoints{CheckpointConfig{}};
  std::int64_t steps = 0;
  std::string failure;
  std::vector<CommitCheckpoint> commits;
  std::vector<std::string> removals;
};

TEST_F(NodeFilesTest, APartThatIsTheWholeCheckpointStaysOnItsNodeUnderItsName) {
  report({{.rank = 2, .path = ".reporting_1_2_0", .node = 7}});
  EXPECT_THAT(engine.fetches, ElementsAre(FieldsAre(7, ".reporting_1_2_0", checkpoint::copy_name(0, 2))));
  EXPECT_THAT(commits, IsEmpty());
  arrives(7, ".reporting_1_2_0");
  ASSERT_EQ(commits.size(), 1U);
  EXPECT_THAT(commits[0].from, ElementsAre(checkpoint::copy_name(0, 2)));
  EXPECT_EQ(commits[0].directory, "checkpoint_000000");
  EXPECT_THAT(engine.kept, ElementsAre(FieldsAre(7, ".reporting_1_2_0", "checkpoint_000000")));
}

TEST_F(NodeFilesTest, PartsOfSeveralRanksAreRemovedFromTheirNodes) {
  report({{.rank = 0, .path = ".reporting_1_0_0", .node = 7}, {.rank = 1, .path = ".reporting_1_1_0", .node = 8}});
  arrives(8, ".reporting_1_1_0");
  EXPECT_THAT(commits, IsEmpty());
  arrives(7, ".reporting_1_0_0");
  ASSERT_EQ(commits.size(), 1U);
  EXPECT_THAT(commits[0].from, ElementsAre(checkpoint::copy_name(0, 0), checkpoint::copy_name(0, 1)));
  EXPECT_THAT(engine.kept, ElementsAre(FieldsAre(7, ".reporting_1_0_0", ""), FieldsAre(8, ".reporting_1_1_0", "")));
}

TEST_F(NodeFilesTest, RanksOfANodeThatReportOneDirectoryHaveItFetchedOnce) {
  std::vector<CheckpointPart> parts;
  for (Rank rank = 0; rank < 4; ++rank)
    parts.push_back({.kind = Kind::in_place, .rank = rank, .path = "mine/last", .node = rank < 2 ? 7 : 8});
  report(parts);
  EXPECT_THAT(engine.fetches, ElementsAre(FieldsAre(7, "mine/last", checkpoint::copy_name(0, 0)),
                                          FieldsAre(8, "mine/last", checkpoint::copy_name(0, 2))));
  arrives(7, "mine/last");
  arrives(8, "mine/last");
  ASSERT_EQ(commits.size(), 1U);
  EXPECT_EQ(commits[0].directory, "mine/last");
  EXPECT_THAT(commits[0].from, ElementsAre(checkpoint::copy_name(0, 0), checkpoint::copy_name(0, 2)));
}

TEST_F(NodeFilesTest, ACopyIsFetchedWhenItIsComplete) {
  report({{.kind = Kind::copying, .rank = 0, .path = ".reporting_1_0_0", .node = 7}});
  EXPECT_THAT(engine.fetches, IsEmpty());
  checkpoints.promise_ended({.rank = 0, .attempt = 1, .end = {.step = 1}}, actions);
  pass_on();
  EXPECT_EQ(engine.fetches.size(), 1U);
  arrives(7, ".reporting_1_0_0");
  EXPECT_EQ(commits.size(), 1U);
}

TEST_F(NodeFilesTest, OnePartThatCannotBeHadCostsTheCheckpointAndLeavesNothing) {
  report({{.rank = 0, .path = ".reporting_1_0_0", .node = 7},
          {.rank = 1, .path = ".reporting_1_1_0", .node = 8},
          {.rank = 2, .path = ".reporting_1_2_0", .node = 9}});
  arrives(7, ".reporting_1_0_0");
  arrives(8, ".reporting_1_1_0", "it is too large");
  EXPECT_EQ(failure, "the checkpoint checkpoint_000000 of report 1 could not be uploaded: it is too large");
  arrives(9, ".reporting_1_2_0");  // nobody waits for it any more
  EXPECT_THAT(commits, IsEmpty());
  EXPECT_THAT(engine.kept, ElementsAre(FieldsAre(7, ".reporting_1_0_0", ""), FieldsAre(9, ".reporting_1_2_0", "")));
  EXPECT_THAT(removals,
              ElementsAre(checkpoint::copy_name(0, 0), checkpoint::copy_name(0, 1), checkpoint::copy_name(0, 2)));
}

TEST_F(NodeFilesTest, PartsThatAreStoredWaitForTheirFilesIfOthersAreHere) {
  namespace fs = std::filesystem;
  const fs::path run = directory.path() / "run";
  NodeFiles both{run, engine};
  const fs::path published = directory.path() / "published/checkpoint_0/0";
  fs::create_directories(published);
  std::ofstream(published / "weights") << "weights";
  fs::create_directories(run);
  storage::write_published_to(run, {.scheme = "file", .location = (directory.path() / "published").string()});
  storage::make_remote(run / checkpoint::copy_name(0, 0),
                       {.files = {{"weights", Dict{{"size", 7}, {"part", "0"}}}}, .place = "checkpoint_0"});
  storage::make_remote(run / checkpoint::copy_name(1, 0),
                       {.files = {{"weights", Dict{{"size", 7}, {"part", "0"}}}}, .place = "gone"});
  for (const CheckpointNumber number : {0, 1}) {
    fs::create_directories(run / checkpoint::copy_name(number, 1));
    const std::string path = std::to_string(number);
    both.fetch(
        {.number = number, .parts = {{.rank = 0, .path = path, .node = 7}, {.rank = 1, .path = path, .node = 8}}});
    EXPECT_FALSE(both.arrived({7, path, ""}));
    EXPECT_FALSE(both.arrived({8, path, ""})) << "the files of the first part are not here";
  }
  std::vector<Event> events;
  while (events.size() < 2) {
    for (Event& event : both.look()) events.push_back(std::move(event));
  }
  const bool first_is_done = std::holds_alternative<CheckpointUploaded>(events.front());
  EXPECT_EQ(std::get<CheckpointUploaded>(events[first_is_done ? 0 : 1]).number, 0);
  EXPECT_EQ(std::get<UploadFailed>(events[first_is_done ? 1 : 0]).number, 1);
  EXPECT_TRUE(fs::exists(run / checkpoint::copy_name(0, 0) / "weights"));
}

TEST_F(NodeFilesTest, ADownloadForWhichThereIsNoThreadFailsTheCheckpointOnly) {
  storage::make_remote(directory.path() / checkpoint::copy_name(0, 0),
                       {.files = {{"weights", Dict{{"size", 7}, {"part", "0"}}}}, .place = "checkpoint_0"});
  std::filesystem::create_directories(directory.path() / checkpoint::copy_name(0, 1));
  report({{.rank = 0, .path = ".reporting_1_0_0", .node = 7}, {.rank = 1, .path = ".reporting_1_1_0", .node = 8}});
  arrives(7, ".reporting_1_0_0");
  if (!test_support::without_threads([&] { arrives(8, ".reporting_1_1_0"); }))
    GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_THAT(failure, HasSubstr("could not be uploaded: no thread can be started"));
  EXPECT_THAT(engine.kept, ElementsAre(FieldsAre(7, ".reporting_1_0_0", ""), FieldsAre(8, ".reporting_1_1_0", "")));
  EXPECT_THAT(commits, IsEmpty());
}

TEST_F(NodeFilesTest, ADownloadForWhichThereIsNoSpaceIsRepeatedAndNothingIsFetchedAgain) {
  namespace fs = std::filesystem;
  const fs::path published = directory.path() / "published";
  fs::create_directories(published / "checkpoint_0/0");
  std::ofstream(published / "checkpoint_0/0/weights") << "weights";
  storage::write_published_to(directory.path(), {.scheme = "file", .location = published.string()});
  storage::make_remote(directory.path() / checkpoint::copy_name(0, 0),
                       {.files = {{"weights", Dict{{"size", 7}, {"part", "0"}}}}, .place = "checkpoint_0"});
  fs::create_directories(directory.path() / checkpoint::copy_name(0, 1));
  const auto end_of_download = [this] {
    for (;;) {
      if (std::vector<Event> events = files.look(); !events.empty()) return std::move(events.front());
    }
  };
  report({{.rank = 0, .path = ".reporting_1_0_0", .node = 7}, {.rank = 1, .path = ".reporting_1_1_0", .node = 8}});
  arrives(7, ".reporting_1_0_0");
  if (!test_support::without_space([&] { arrives(8, ".reporting_1_1_0"); }))
    GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_EQ(checkpoints.upload_failed(std::get<UploadFailed>(end_of_download()), true, actions), "");
  pass_on();
  EXPECT_THAT(engine.kept, IsEmpty());

  checkpoints.try_again(0, actions);
  pass_on();
  EXPECT_EQ(engine.fetches.size(), 2U);
  checkpoints.uploaded(std::get<CheckpointUploaded>(end_of_download()), actions);
  checkpoints.commit_ready(actions);
  pass_on();
  EXPECT_EQ(commits.size(), 1U);
  EXPECT_TRUE(fs::exists(directory.path() / checkpoint::copy_name(0, 0) / "weights"));
}

TEST_F(NodeFilesTest, PartsThatAreAllStoredStayThere) {
  for (const int rank : {0, 1}) {
    const std::string part = std::to_string(rank);
    storage::make_remote(directory.path() / checkpoint::copy_name(0, rank),
                         {.files = {{"weights_" + part, Dict{{"size", 7}, {"part", part}}}}, .place = "checkpoint_0"});
  }
  report({{.rank = 0, .path = ".reporting_1_0_0", .node = 7}, {.rank = 1, .path = ".reporting_1_1_0", .node = 8}});
  arrives(7, ".reporting_1_0_0");
  arrives(8, ".reporting_1_1_0");
  EXPECT_EQ(commits.size(), 1U);
}

}  // namespace
}  // namespace cadre::train
