#include "control/work_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/file_worker.h"
#include "engine/forwarding_engine.h"
#include "storage/remote_directory.h"
#include "store/object_files.h"
#include "support/engine_of_a_place.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"

namespace cadre::control {
namespace {

namespace fs = std::filesystem;
using test_support::EngineWhoseWorkersWorkIn;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kBytes = "of a model";

class WorkPlaceTest : public testing::Test {
 protected:
  WorkPlaceTest() {
    storage::write_published_to(run, uri);
    fs::create_directories(run / "trial");
    fs::create_directories(published / "trial");
  }

  // Each takes over, as the controller of a further session does.
  WorkPlace here() { return {run, publication(), in_run_}; }
  WorkPlace shared() { return {run, publication(), in_published_}; }

  publish::Publication publication() {
    lease.reset();
    const std::shared_ptr<storage::Storage> storage = storage::open_storage(uri);
    lease = std::make_shared<publish::Lease>(publish::Lease::Setting{.storage = storage, .uri = uri});
    return {.uri = uri, .storage = storage, .lease = lease};
  }

  static void fill(const fs::path& directory) {
    fs::create_directories(directory);
    std::ofstream(directory / "model") << kBytes;
    checkpoint::write_metadata(directory, {});
  }

  std::vector<std::string> in(const fs::path& directory) { return base::list_directory(directory); }

  test_support::TemporaryDirectory folder;
  const fs::path run = make("run");
  const fs::path published = make("published");
  const storage::Uri uri{.scheme = "file", .location = published.string()};
  std::shared_ptr<publish::Lease> lease = {};

 private:
  EngineWhoseWorkersWorkIn in_run_{{}};
  EngineWhoseWorkersWorkIn in_published_{published};

  fs::path make(const char* name) const {
    fs::create_directories(folder.path() / name);
    return folder.path() / name;
  }
};

TEST_F(WorkPlaceTest, IsTheDirectoryOfTheRunUnlessNodesSeeOnlyWhereItIsPublished) {
  EXPECT_EQ(here().root(), run);
  EXPECT_EQ(WorkPlace(run, std::nullopt, EngineWhoseWorkersWorkIn(run)).root(), run);
  const WorkPlace place = shared();
  EXPECT_EQ(place.root(), published);
  EXPECT_EQ(place.generation(), 2);
  EXPECT_THROW(WorkPlace(run, std::nullopt, EngineWhoseWorkersWorkIn(published)), EngineError);
}

TEST_F(WorkPlaceTest, ACommitInASharedPlaceWritesNoFileOfTheCheckpoint) {
  const WorkPlace place = shared();
  const fs::path reported = place.reported("trial/.reporting_1_0");
  EXPECT_EQ(reported, published / "trial/.reporting_1_0");
  fill(reported);
  const auto written = fs::last_write_time(reported / "model");
  for (int i = 0; i < 2; ++i) {  // a transaction may be tried again
    place.commit("trial/.reporting_1_0", "trial/checkpoint_000000");
    EXPECT_THAT(in(published / "trial"), ElementsAre("checkpoint_000000"));
    EXPECT_THAT(in(run / "trial/checkpoint_000000"), ElementsAre(storage::kRemoteFile));
  }
  EXPECT_EQ(fs::last_write_time(published / "trial/checkpoint_000000/model"), written);
  EXPECT_EQ(place.checkpoint("trial/checkpoint_000000"), published / "trial/checkpoint_000000");

  const Dict sealed = checkpoint::seal_files(run, "trial/checkpoint_000000");
  EXPECT_EQ(Config(sealed).get<std::int64_t>("model/size"), static_cast<std::int64_t>(kBytes.size()));
  EXPECT_TRUE(Config(sealed).contains("model/xxh3"));
  EXPECT_EQ(storage::remote_files(run / "trial/checkpoint_000000")->files, sealed);
  const fs::path copy = folder.path() / "copy";
  storage::download_remote(run / "trial/checkpoint_000000", copy);
  EXPECT_EQ(base::read_file(copy / "model"), kBytes);
}

TEST_F(WorkPlaceTest, EachControllerHasNamesOfItsOwnInASharedPlace) {
  const WorkPlace first = shared();
  const WorkPlace second = shared();
  fill(published / "trial/.reporting_1_0");
  fill(published / "trial/.reporting_1_0.generation_2");
  second.commit("trial/.reporting_1_0.generation_2", "trial/checkpoint_000000");
  fs::remove_all(run / "trial/checkpoint_000000");  // it is on another machine
  first.commit("trial/.reporting_1_0", "trial/checkpoint_000000");
  EXPECT_THAT(in(published / "trial"), ElementsAre("checkpoint_000000", "checkpoint_000000.generation_2"));
}

TEST_F(WorkPlaceTest, ACommitThatWasInterruptedAfterItsRenameIsFinished) {
  const WorkPlace first = shared();
  fill(published / "trial/.reporting_1_0");
  fs::rename(published / "trial/.reporting_1_0", published / "trial/checkpoint_000000");
  first.commit("trial/.reporting_1_0", "trial/checkpoint_000000");
  EXPECT_TRUE(storage::remote_files(run / "trial/checkpoint_000000"));
  EXPECT_THROW(first.commit("trial/.reporting_1_1", "trial/checkpoint_000001"), StorageError);

  fs::remove_all(run / "trial/checkpoint_000000");
  for (const WorkPlace& later : {here(), shared()}) {
    later.finish_commit("trial/checkpoint_000000");
    EXPECT_EQ(later.checkpoint("trial/checkpoint_000000").filename(), "checkpoint_000000");
    EXPECT_TRUE(storage::remote_files(run / "trial/checkpoint_000000"));
    fs::remove_all(run / "trial/checkpoint_000000");
    later.finish_commit("trial/checkpoint_000001");
    EXPECT_FALSE(fs::exists(run / "trial/checkpoint_000001"));
  }
}

// The directory that was left without its list was taken for the checkpoint, and had no file.
TEST_F(WorkPlaceTest, ACommitThatFoundNoSpaceForItsListIsRepeated) {
  const WorkPlace place = shared();
  fill(published / "trial/.reporting_1_0");
  const auto commit = [&] { place.commit("trial/.reporting_1_0", "trial/checkpoint_000000"); };
  if (!test_support::without_calls({SYS_write}, ENOSPC, [&] { EXPECT_THROW(commit(), OutOfSpace); }))
    GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_THAT(in(run / "trial"), IsEmpty());
  commit();
  EXPECT_TRUE(storage::remote_files(run / "trial/checkpoint_000000"));
  EXPECT_EQ(base::read_file(place.checkpoint("trial/checkpoint_000000") / "model"), kBytes);
}

TEST_F(WorkPlaceTest, WhatWasReportedInTheOtherPlaceIsCommitted) {
  shared();
  fill(published / "trial/.reporting_1_0");
  fill(run / "trial/.reporting_1_1");
  here().commit("trial/.reporting_1_0", "trial/checkpoint_000000");
  EXPECT_THAT(in(run / "trial/checkpoint_000000"), ElementsAre(storage::kRemoteFile));
  const WorkPlace place = shared();
  place.commit("trial/.reporting_1_1", "trial/checkpoint_000001");
  EXPECT_THAT(in(run / "trial/checkpoint_000001"), ElementsAre(storage::kRemoteFile));
  EXPECT_EQ(base::read_file(place.checkpoint("trial/checkpoint_000001") / "model"), kBytes);
}

TEST_F(WorkPlaceTest, ADirectoryThatKeepsItsNameIsCommittedInPlace) {
  const WorkPlace place = shared();
  fill(published / "best");
  for (int i = 0; i < 2; ++i) place.commit_in_place("best");
  EXPECT_THAT(in(run / "best"), ElementsAre(storage::kRemoteFile));
  EXPECT_EQ(place.checkpoint("best"), published / "best");
  EXPECT_TRUE(checkpoint::was_to_be_committed(run / "best"));
}

TEST_F(WorkPlaceTest, PreparingBringsCheckpointsAndObjectsToASharedPlace) {
  fill(run / "trial/checkpoint_000000");
  store::ExperimentStore store = store::ExperimentStore::create(run, {"run", "function", "{}"});
  store.add(store::CheckpointRow{1, 0, 1, "trial/checkpoint_000000"});
  store.add(store::CheckpointRow{2, 0, 2, "trial/checkpoint_000001"});  // lost, which a recovery says
  store.commit();
  const std::string bytes = "an object";
  const std::string id = store::object_id("00112233445566778899aabbccddeeff", bytes.size());
  fs::create_directories(run / store::kObjectsDirectory);
  std::ofstream(store::object_path(run, id)) << bytes;
  here().prepare(store);
  EXPECT_THAT(in(published / "trial"), IsEmpty());

  const WorkPlace place = shared();
  place.prepare(store);
  EXPECT_EQ(base::read_file(place.checkpoint("trial/checkpoint_000000") / "model"), kBytes);
  EXPECT_THAT(in(run / "trial/checkpoint_000000"), ElementsAre(storage::kRemoteFile));
  EXPECT_EQ(base::read_file(store::object_path(published, id)), bytes);
  const auto written = fs::last_write_time(store::object_path(published, id));
  place.prepare(store);
  EXPECT_EQ(fs::last_write_time(store::object_path(published, id)), written) << "workers may have mapped it";
}

TEST_F(WorkPlaceTest, OutputIsFoundInBothPlaces) {
  std::ofstream(run / "trial/stdout") << "first\n";
  shared().make_directory("trial");
  shared().make_directory("trial");
  std::ofstream(published / "trial/stdout", std::ios::app) << "second\n";
  EXPECT_EQ(base::read_file(run / "trial/stdout"), "first\nsecond\n");
  here().make_directory("trial");
  EXPECT_FALSE(fs::is_symlink(run / "trial/stdout"));
  EXPECT_EQ(base::read_file(run / "trial/stdout"), "first\nsecond\n");
  EXPECT_FALSE(fs::exists(fs::symlink_status(run / "trial/stderr")));
}

TEST_F(WorkPlaceTest, WhatNobodyReportedIsFoundAndRemoved) {
  fill(published / "trial/.reporting_1_0.generation_3");
  fill(published / "trial/checkpoint_000000");
  const WorkPlace place = here();
  EXPECT_THAT(place.reported_where_published("trial"), ElementsAre(".reporting_1_0.generation_3"));
  EXPECT_THAT(place.reported_where_published("other"), IsEmpty());
  place.remove_where_published({"trial/.reporting_1_0.generation_3", "a test"});
  place.remove_where_published({"trial/checkpoint_000000", "a test"});  // the publisher does
  EXPECT_THAT(in(published / "trial"), ElementsAre("checkpoint_000000"));
}

TEST_F(WorkPlaceTest, WhatIsDeletedIsDeletedInBothPlaces) {
  const WorkPlace place = shared();
  fill(published / "trial/.reporting_1_0");
  place.commit("trial/.reporting_1_0", "trial/checkpoint_000000");
  fill(published / "trial/.reporting_1_1");
  fill(published / "best");
  place.commit_in_place("best");
  {
    checkpoint::FileWorker worker(run, place.shared(), [] {});
    for (const char* gone : {"trial/checkpoint_000000", "trial/.reporting_1_1", "best"}) worker.remove(gone);
  }
  EXPECT_THAT(in(published / "trial"), IsEmpty());
  EXPECT_THAT(in(run / "trial"), IsEmpty());
  EXPECT_FALSE(fs::exists(published / "best"));
  EXPECT_FALSE(fs::exists(run / "best"));
}

// An engine that carries files to nodes.
class CarryingEngine final : public engine::ForwardingEngine {
 public:
  CarryingEngine() : ForwardingEngine(static_cast<Engine&>(*this)) {}
  bool carries_files() const override { return true; }
};

TEST_F(WorkPlaceTest, NodesStoreWhatTheyReportUnderNamesOfThisControllerAndItsOwn) {
  const CarryingEngine carrying;
  publish::Publication object_storage = publication();
  EXPECT_FALSE(WorkPlace(run, object_storage, carrying).storage_for_nodes()) << "it is published in a directory";
  object_storage.uri = {.scheme = "s3", .location = "bucket"};
  const auto first = WorkPlace(run, object_storage, carrying).storage_for_nodes();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->contents, base::read_file(published / publish::kLeaseFile));
  EXPECT_EQ(first->place_of("trial/.reporting_2_5").directory, "trial/checkpoint_2_5");
  EXPECT_EQ(first->place_of("trial/.reporting_2_5").part, "");
  object_storage.lease.reset();
  object_storage = publication();
  object_storage.uri = {.scheme = "s3", .location = "bucket"};
  const auto second = WorkPlace(run, object_storage, carrying).storage_for_nodes();
  EXPECT_EQ(second->place_of("trial/.reporting_2_5").directory, "trial/checkpoint_2_5.generation_2");
  EXPECT_EQ(second->place_of(checkpoint::copy_name(7, 1)).directory, "checkpoint_7.generation_2");
  EXPECT_EQ(second->place_of(checkpoint::copy_name(7, 1)).part, "1");
  EXPECT_NE(second->contents, first->contents);
  EXPECT_FALSE(WorkPlace(run, std::nullopt, carrying).storage_for_nodes());
}

}  // namespace
}  // namespace cadre::control
