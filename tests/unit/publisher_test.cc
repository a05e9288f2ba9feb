#include "publish/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/directory.h"
#include "base/temporary_folder.h"
#include "publish/lease.h"
#include "publish/manifest.h"
#include "publish/removal_lane.h"
#include "publish/restore.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"
#include "storage/uploads.h"
#include "store/experiment_store.h"
#include "support/store_content.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"

namespace cadre::publish {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A directory as a storage; calls functions before it does its work, `before_list` once.
class WatchedStorage : public storage::Storage {
 public:
  explicit WatchedStorage(const fs::path& root)
      : inner_(storage::open_storage({.scheme = "file", .location = root.string()})) {}

  std::function<void()> before_list = [] {};
  std::function<void(const std::string&)> before_read = [](const std::string&) {};
  std::function<void(const std::string&)> before_version_of = [](const std::string&) {};
  std::function<void()> before_write_if = [] {};
  std::function<void(const std::string&)> before_upload = [](const std::string&) {};
  std::function<void(const std::string&)> before_remove_folder = [](const std::string&) {};

  void write(const std::string& name, std::string_view bytes) override { inner_->write(name, bytes); }
  storage::Contents upload(const storage::FileToUpload& file, const std::string& name) override {
    before_upload(name);
    return inner_->upload(file, name);
  }
  std::optional<std::string> read(const std::string& name) override {
    before_read(name);
    return inner_->read(name);
  }
  storage::Contents download(const std::string& name, const fs::path& file) override {
    return inner_->download(name, file);
  }
  std::optional<storage::StoredFile> find(const std::string& name) override { return inner_->find(name); }
  std::vector<storage::StoredFile> list(const std::string& folder) override {
    std::exchange(before_list, [] {})();
    return inner_->list(folder);
  }
  void remove(const std::string& name) override { inner_->remove(name); }
  void remove_folder(const std::string& folder) override {
    before_remove_folder(folder);
    inner_->remove_folder(folder);
  }
  void remove_unfinished() override { inner_->remove_unfinished(); }
  bool has_conditional_writes() override { return inner_->has_conditional_writes(); }
  std::optional<storage::VersionedBytes> read_versioned(const std::string& name) override {
    return inner_->read_versioned(name);
  }
  std::optional<storage::Version> version_of(const std::string& name) override {
    before_version_of(name);
    return inner_->version_of(name);
  }
  std::optional<storage::Version> write_if(const std::string& name, std::string_view bytes,
                                           const std::optional<storage::Version>& expected) override {
    before_write_if();
    return inner_->write_if(name, bytes, expected);
  }
  std::optional<storage::Version> upload_if(const storage::FileToUpload& file, const std::string& name,
                                            const std::optional<storage::Version>& expected) override {
    return inner_->upload_if(file, name, expected);
  }

 private:
  std::unique_ptr<storage::Storage> inner_;
};

class PublisherTest : public testing::Test {
 protected:
  PublisherTest()
      : storage_(std::make_shared<WatchedStorage>(directory_ / "published")),
        experiment_(directory_ / "experiment"),
        store_(create_store(experiment_)) {}

  static store::ExperimentStore create_store(const fs::path& experiment) {
    fs::create_directory(experiment);
    return store::ExperimentStore::create(experiment, {"name", "f", "{}"});
  }
  std::shared_ptr<Lease> take_lease() {
    LeaseSystem system = LeaseSystem::of_this_process();
    system.seconds = [this] { return clock_.load(); };
    system.is_dead = [](const Holder&) { return true; };
    return std::make_shared<Lease>(Lease::Setting{.storage = storage_, .uri = uri(), .system = std::move(system)});
  }
  storage::Uri uri() const { return {.scheme = "file", .location = (directory_ / "published").string()}; }

  void start(std::optional<std::set<std::string>> leftovers = {}, bool is_work_place = true) {
    publisher_.emplace(Publisher::Setting{.directory = experiment_,
                                          .uri = uri(),
                                          .storage = storage_,
                                          .lease = take_lease(),
                                          .leftovers = std::move(leftovers),
                                          .is_work_place = is_work_place,
                                          .interval = std::chrono::milliseconds(1)});
  }
  void add_checkpoint(std::int64_t id, const std::string& directory) {
    fs::create_directories(experiment_ / directory);
    std::ofstream(experiment_ / directory / "model") << "weights";
    store_.add(store::CheckpointRow{.id = id, .directory = directory, .synced = true});
    store_.commit();
  }
  bool is_there(const std::string& name) const { return storage_->find(name).has_value(); }
  bool is_local(const std::string& checkpoint) const { return fs::exists(experiment_ / checkpoint / "model"); }

  static testing::AssertionResult eventually(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + 60s; !holds(); std::this_thread::sleep_for(5ms)) {
      if (std::chrono::steady_clock::now() > until) return testing::AssertionFailure() << "it never came so";
    }
    return testing::AssertionSuccess();
  }

  test_support::TemporaryDirectory directory_;
  std::atomic<double> clock_ = 1000;
  std::shared_ptr<WatchedStorage> storage_;
  fs::path experiment_;
  store::ExperimentStore store_;
  std::optional<Publisher> publisher_;
};

TEST_F(PublisherTest, RemovesFromTheLocalDiskOnlyWhatItHadPublishedWhenItWasTold) {
  add_checkpoint(0, "checkpoint_000000");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  const fs::path pipe = experiment_ / "checkpoint_000000/.remote.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  publisher_->keep_only({});  // waits at the pipe
  add_checkpoint(1, "checkpoint_000001");
  ASSERT_TRUE(eventually([&] { return is_there("checkpoint_000001/model") && publisher_->has_published(); }));
  std::ofstream end_of_wait(pipe);
  fs::remove(pipe);
  end_of_wait << "no list" << std::flush;
  end_of_wait.close();
  publisher_->finish_removals();
  EXPECT_TRUE(is_local("checkpoint_000001"));
  publisher_->keep_only({});
  publisher_->finish_removals();
  EXPECT_FALSE(is_local("checkpoint_000001"));
}

TEST_F(PublisherTest, HasWhatHasNotChangedForLongHoweverManySegmentsBecomeOne) {
  store_.put(store::TrialRow{.trial = 0, .status = "TERMINATED", .config = "{}"});
  store_.put(store::TrialRow{.trial = 1, .status = "RUNNING", .config = "{}"});
  store_.commit();
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  for (int segment = 2; segment <= 600; ++segment) {  // some become one for the third time
    store_.add(store::EventRow{.kind = "function_returned"});
    store_.commit();
    ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
    if (segment % 64 != 0) continue;
    const auto copy = reading_copy(uri());
    const auto made = store::ExperimentStore::open(*copy);
    EXPECT_EQ(test_support::content_of_store(made), test_support::content_of_store(store_)) << segment << " segments";
  }
}

TEST_F(PublisherTest, LeavesACheckpointThatIsToBeRemovedToItsRemoval) {
  add_checkpoint(0, "trial/checkpoint_000000");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  fs::rename(experiment_ / "trial", experiment_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", experiment_ / "trial");  // the removal follows no link, and fails
  std::atomic<bool> is_taken = false;
  storage_->before_upload = [&](const std::string& name) {
    if (name.ends_with("segment")) is_taken = is_taken || publisher_->takes_over_removal("trial/checkpoint_000000");
  };
  add_checkpoint(1, "trial/checkpoint_000001");
  ASSERT_TRUE(eventually([&] { return is_taken && publisher_->has_published(); }));
  publisher_->keep_only({});
  publisher_->finish_removals();
  EXPECT_FALSE(is_local("trial/checkpoint_000001"));
  EXPECT_TRUE(is_local("trial/checkpoint_000000"));
  EXPECT_THAT(publisher_->removals(), testing::ElementsAre("trial/checkpoint_000000"));
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, SaysOnceThatACheckpointCannotBeRemoved) {
  add_checkpoint(0, "trial/checkpoint_000000");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  fs::rename(experiment_ / "trial", experiment_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", experiment_ / "trial");  // the removal follows no link, and fails
  std::atomic<bool> is_taken = false;
  storage_->before_upload = [&](const std::string& name) {
    if (name.ends_with("segment")) is_taken = is_taken || publisher_->takes_over_removal("trial/checkpoint_000000");
  };
  for (const std::int64_t id : {1, 2, 3}) {
    add_checkpoint(id, "trial/checkpoint_00000" + std::to_string(id));
    ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  }
  ASSERT_TRUE(is_taken);
  EXPECT_THAT(publisher_->removals(), testing::ElementsAre("trial/checkpoint_000000"));
  EXPECT_THAT(publisher_->take_messages(), testing::ElementsAre(testing::HasSubstr("stays: cannot remove")));
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, SaysOnceThatAPublishedCheckpointStaysOnTheLocalDisk) {
  add_checkpoint(0, "checkpoint_000000");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  fs::create_directory(experiment_ / "checkpoint_000000/.remote.json");  // no list is read or written there
  for (const std::int64_t id : {1, 2, 3}) {
    publisher_->keep_only({});
    publisher_->finish_removals();
    add_checkpoint(id, "checkpoint_00000" + std::to_string(id));
    ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  }
  EXPECT_TRUE(is_local("checkpoint_000000"));
  EXPECT_FALSE(is_local("checkpoint_000001"));
  EXPECT_THAT(publisher_->take_messages(), testing::ElementsAre(testing::HasSubstr("stays on the local disk")));
}

TEST_F(PublisherTest, SaysNothingOfACheckpointThatWasRemovedWhileItWasBeingPublished) {
  add_checkpoint(0, "trial/checkpoint_000000");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  std::atomic<bool> is_taken = false;
  storage_->before_upload = [&](const std::string& name) {
    if (name.ends_with("segment")) is_taken = is_taken || publisher_->takes_over_removal("trial/checkpoint_000000");
  };
  add_checkpoint(1, "trial/checkpoint_000001");
  ASSERT_TRUE(eventually([&] { return is_taken && publisher_->has_published(); }));
  ASSERT_TRUE(eventually([&] { return publisher_->removals().empty(); }));
  publisher_->keep_only({});
  publisher_->finish_removals();
  EXPECT_FALSE(is_local("trial/checkpoint_000001"));
  EXPECT_THAT(publisher_->take_messages(), testing::IsEmpty());
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, PublishesWhatWorkersHaveWrittenWithoutAnUpload) {
  const fs::path place = directory_ / "published/trial/checkpoint_000000";
  fs::create_directories(place);
  std::ofstream(place / "model") << "weights";
  storage::write_published_to(experiment_, uri());
  storage::make_remote(experiment_ / "trial/checkpoint_000000", {.files = {{"model", Dict{{"size", 7}}}}});
  store_.add(store::CheckpointRow{.id = 0, .directory = "trial/checkpoint_000000"});
  store_.commit();
  std::atomic<bool> is_uploaded = false;
  storage_->before_upload = [&](const std::string& name) { is_uploaded = is_uploaded || name.ends_with("model"); };
  start(std::set<std::string>());
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_FALSE(is_uploaded);
  const auto remote = storage::remote_files(experiment_ / "trial/checkpoint_000000");
  EXPECT_TRUE(Config(remote->files).contains("model/xxh3")) << "it is sealed before it is published";

  store_.remove_checkpoint(0);
  store_.commit();
  EXPECT_TRUE(publisher_->takes_over_removal("trial/checkpoint_000000")) << "what is published lists it";
  EXPECT_TRUE(eventually([&] { return !is_there("trial/checkpoint_000000/model"); }));
  EXPECT_TRUE(eventually([&] { return publisher_->removals().empty(); }));
  EXPECT_TRUE(eventually([&] { return !publisher_->takes_over_removal("trial/checkpoint_000001"); }))
      << "it was never published";
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, RemovesWhatWorkersHaveWrittenAlsoIfItIsGoneBeforeItIsPublished) {
  start(std::set<std::string>());
  storage::write_published_to(experiment_, uri());
  for (int number = 0;; ++number) {  // until it comes while a state is being read
    ASSERT_LT(number, 100'000);
    const std::string checkpoint = "trial/checkpoint_" + std::to_string(number);
    if (number % 100 == 0) {
      store_.add(store::ResultRow{.trial = 0, .step = number, .metrics = "{}"});
      store_.commit();
    }
    storage_->write(checkpoint + "/model", "weights");
    storage::make_remote(experiment_ / checkpoint, {.files = {{"model", Dict{{"size", 7}}}}});
    if (!publisher_->takes_over_removal(checkpoint)) continue;
    EXPECT_TRUE(eventually([&] { return publisher_->removals().empty(); }));
    EXPECT_TRUE(eventually([&] { return !is_there(checkpoint + "/model"); }));
    EXPECT_FALSE(fs::exists(experiment_ / checkpoint));
    return;
  }
}

TEST_F(PublisherTest, ACheckpointWithAPlaceOfItsOwnIsRestoredFromThereAndRemovedThere) {
  const std::string checkpoint = "trial/checkpoint_000000";
  const storage::Remote remote{.files = {{"model", Dict{{"size", 7}, {"xxh3", "0"}}}}, .place = "trial/checkpoint_2_5"};
  storage_->write(remote.place + "/model", "weights");
  storage::write_published_to(experiment_, uri());
  storage::make_remote(experiment_ / checkpoint, remote);
  fs::create_directories(experiment_ / "trial/checkpoint_000001");
  std::ofstream(experiment_ / "trial/checkpoint_000001/model") << "weights";
  store_.add(store::CheckpointRow{.id = 0, .directory = checkpoint});
  store_.add(store::CheckpointRow{.id = 1, .directory = "trial/checkpoint_000001"});
  store_.commit();
  start(std::set<std::string>(), false);
  for (int i = 0; i < 20; ++i) {  // until segments have become one
    store_.add(store::ResultRow{.trial = 0, .step = i, .metrics = "{}"});
    store_.commit();
    ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  }
  const fs::path elsewhere = directory_ / "elsewhere";
  const WorkingDirectory working = working_directory(uri(), {.local_path = elsewhere});
  EXPECT_EQ(storage::remote_files(working.path / checkpoint)->place, remote.place);
  EXPECT_EQ(storage::remote_files(working.path / checkpoint)->files, remote.files);
  EXPECT_EQ(storage::remote_files(working.path / "trial/checkpoint_000001")->place, "");

  store_.remove_checkpoint(0);
  store_.commit();
  EXPECT_TRUE(publisher_->takes_over_removal(checkpoint));
  EXPECT_TRUE(eventually([&] { return !is_there(remote.place + "/model"); }));
  EXPECT_TRUE(eventually([&] { return publisher_->removals().empty(); }));
  EXPECT_FALSE(fs::exists(experiment_ / checkpoint));
}

TEST_F(PublisherTest, RemovesWhatWasNotCommittedWhereItWasStored) {
  const std::string reported = "trial/.reporting_2_5";
  storage::write_published_to(experiment_, uri());
  start(std::set<std::string>(), false);
  storage_->write("trial/checkpoint_2_5/model", "weights");
  storage::make_remote(experiment_ / reported,
                       {.files = {{"model", Dict{{"size", 7}}}}, .place = "trial/checkpoint_2_5"});
  EXPECT_TRUE(publisher_->takes_over_removal(reported)) << "the controller cannot remove it there";
  EXPECT_TRUE(eventually([&] { return !is_there("trial/checkpoint_2_5/model"); }));
  EXPECT_TRUE(eventually([&] { return publisher_->removals().empty(); }));
  EXPECT_FALSE(fs::exists(experiment_ / reported));

  add_checkpoint(0, "trial/checkpoint_000000");
  storage_->write("trial/checkpoint_3_0/model", "of a worker that was killed before it could report this");
  const std::string successor = "trial/" + checkpoint_place("checkpoint_3_0", 2) + "/model";
  storage_->write(successor, "weights");
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");
  EXPECT_FALSE(is_there("trial/checkpoint_3_0/model"));
  EXPECT_TRUE(is_there("trial/checkpoint_000000/model"));
  EXPECT_TRUE(is_there(successor));
}

TEST_F(PublisherTest, KeepsWhatItsPredecessorListsUntilItHasPublished) {
  const std::string checkpoint = "trial/checkpoint_000000";
  add_checkpoint(0, checkpoint);
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  publisher_.reset();
  storage::replace_by_remote(experiment_ / checkpoint, {.files = {{"model", Dict{{"size", 7}}}}});
  store_.remove_checkpoint(0);
  store_.commit();
  std::atomic<bool> is_started = false;
  std::atomic<int> kept = 0;  // before there is a manifest of its own; -1: it was not
  storage_->before_upload = [&](const std::string& name) {
    if (!name.ends_with("segment") || kept != 0) return;
    while (!is_started) std::this_thread::sleep_for(1ms);
    kept = publisher_->takes_over_removal(checkpoint) && is_there(checkpoint + "/model") ? 1 : -1;
  };
  start(published_names(*storage_));
  is_started = true;
  EXPECT_TRUE(eventually([&] { return kept != 0 && !is_there(checkpoint + "/model"); }));
  EXPECT_EQ(kept, 1);
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, RemovesOnlyWhatWasLeftOverBeforeWorkersBegan) {
  for (const char* name : {"z/checkpoint_000001/model", "z/checkpoint_000002/model", "z/.reporting_1_0/model"})
    storage_->write(name, "weights");
  EXPECT_THAT(published_names(*storage_), testing::ElementsAre("z/checkpoint_000001", "z/checkpoint_000002"));
  store_.add(store::ResultRow{.trial = 0, .metrics = "{}"});
  store_.commit();
  start(std::set<std::string>{"z/checkpoint_000001"});
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  ASSERT_TRUE(eventually([&] { return !is_there("z/checkpoint_000001/model"); }));
  EXPECT_TRUE(is_there("z/checkpoint_000002/model"));
  EXPECT_TRUE(is_there("z/.reporting_1_0/model"));
}

TEST_F(PublisherTest, RemovesWhatIsLeftOverAlsoIfTheStorageDoesNotListItAtFirst) {
  storage_->write("z/checkpoint_000001/model", "left over");
  storage_->before_list = [] { throw storage::StorageFault(storage::StorageFault::Kind::passing, "it is busy"); };
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_TRUE(is_there("z/checkpoint_000001/model"));
  store_.add(store::EventRow{.kind = "function_returned"});
  store_.commit();
  EXPECT_TRUE(eventually([&] { return !is_there("z/checkpoint_000001/model"); }));
}

TEST_F(PublisherTest, ANameThatIsClaimedIsNotRemovedLaterIfItsRemovalFails) {
  const std::string name = "trial/checkpoint_000000";
  std::atomic<bool> is_begun = false;
  std::atomic<bool> may_fail = false;
  storage_->before_remove_folder = [&](const std::string& folder) {
    if (folder != name || is_begun.exchange(true)) return;
    while (!may_fail) std::this_thread::sleep_for(1ms);
    throw storage::StorageFault(storage::StorageFault::Kind::passing, "the storage does not answer");
  };
  RemovalLane lane(storage_);
  lane.remove(name, RemovalLane::What::folder);
  ASSERT_TRUE(eventually([&] { return is_begun.load(); }));
  std::thread claiming([&] {
    lane.claim(name);
    storage_->write(name + "/model", "weights");
  });
  std::this_thread::sleep_for(10ms);  // it most likely waits by now; the other order is right, too
  may_fail = true;
  claiming.join();
  lane.remove("another", RemovalLane::What::folder);  // after all that waits
  EXPECT_TRUE(eventually([&] { return lane.idle(); }));
  EXPECT_TRUE(is_there(name + "/model"));
}

TEST_F(PublisherTest, KeepsACheckpointThatHasTheNameOfOneThatWasRemovedSinceTheLastState) {
  storage::write_published_to(experiment_, uri());
  storage_->write("best/model", "weights");  // by a worker
  storage::make_remote(experiment_ / "best", {.files = {{"model", Dict{{"size", 7}, {"xxh3", "0"}}}}});
  store_.add(store::CheckpointRow{.id = 0, .directory = "best", .synced = true});
  store_.commit();
  std::atomic<bool> is_removed = false;
  storage_->before_remove_folder = [&](const std::string& folder) { is_removed = is_removed || folder == "best"; };
  start(std::set<std::string>());
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  store_.remove_checkpoint(0);  // in one transaction with the next: no state is between them
  store_.add(store::CheckpointRow{.id = 1, .directory = "best", .synced = true});
  store_.commit();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");  // it waits for removals
  EXPECT_FALSE(is_removed);
  EXPECT_TRUE(is_there("best/model"));
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, ACheckpointWithANameThatIsGivenAgainReplacesNothingThatThePublishedStateLists) {
  const auto add_best = [this](std::int64_t id, const char* contents) {
    fs::create_directory(experiment_ / "best");
    std::ofstream(experiment_ / "best/.metadata.json") << "{}";
    std::ofstream(experiment_ / "best/model") << contents;
    store_.add(store::CheckpointRow{.id = id, .directory = "best"});
    store_.commit();
  };
  const auto restored_model = [this](const char* elsewhere) {
    const WorkingDirectory working = working_directory(uri(), {.local_path = directory_ / elsewhere});
    return storage_->read(storage::remote_files(working.path / "best")->place_of("best") + "/model");
  };
  std::atomic<bool> fails = false;
  std::atomic<bool> has_failed = false;
  storage_->before_upload = [&](const std::string& name) {
    if (!fails || !name.ends_with("segment")) return;
    has_failed = true;
    throw storage::StorageFault(storage::StorageFault::Kind::passing, "the storage does not answer");
  };
  add_best(0, "weights");
  start({}, false);
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  fails = true;
  store_.remove_checkpoint(0);
  add_best(1, "other weights");
  ASSERT_TRUE(eventually([&] { return has_failed.load(); }));
  EXPECT_EQ(restored_model("after a crash"), "weights");

  fails = false;
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(restored_model("later"), "other weights");
  EXPECT_TRUE(eventually([&] { return !is_there("best/model"); }));
  EXPECT_THAT(published_names(*storage_), testing::Contains("best_1"));
  publisher_.reset();  // it calls a function of this test
}

TEST_F(PublisherTest, TakesNoPartOfACheckpointForAnotherOne) {
  add_checkpoint(0, "best");
  for (const char* const directory : {"best", "best/first"}) {  // a copy of another one is a part of it
    fs::create_directories(experiment_ / directory);
    std::ofstream(experiment_ / directory / ".metadata.json") << "{}";
  }
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");  // it waits for removals
  EXPECT_TRUE(is_there("best/first/.metadata.json"));
  EXPECT_THAT(published_names(*storage_), testing::Contains("best"));
  EXPECT_THAT(published_names(*storage_), testing::Not(testing::Contains("best/first")));
}

TEST_F(PublisherTest, WaitsAlsoWithAPatienceBeyondNanoseconds) {
  add_checkpoint(0, "checkpoint_000000");
  start();
  EXPECT_EQ(publisher_->finish(std::chrono::duration<double>(1e10), [] { return false; }), "");
  EXPECT_TRUE(is_there("checkpoint_000000/model"));
}

TEST_F(PublisherTest, ALeaseIsReleasedAlsoWhileAnotherThreadRenewsIt) {
  LeaseSystem system = LeaseSystem::of_this_process();
  system.is_dead = [](const Holder&) { return false; };
  const auto is_free = [&] {
    try {
      const Lease next(Lease::Setting{.storage = storage_, .uri = uri(), .system = system});
      return true;
    } catch (const StorageError&) {
      return false;
    }
  };
  {
    Lease lease(Lease::Setting{.storage = storage_, .uri = uri(), .system = system});
    EXPECT_FALSE(is_free());
    storage_->before_write_if = [&, is_done = false]() mutable {
      if (!std::exchange(is_done, true)) lease.renew();  // after release() has read it
    };
    lease.release();
    lease.renew();  // one that has begun before
    EXPECT_TRUE(is_free());
  }
  EXPECT_TRUE(is_free());
}

TEST_F(PublisherTest, KeepsCheckpointsInADirectoryThatLooksLikeOne) {
  add_checkpoint(0, "trial/checkpoint_000000");
  storage_->write("trial/.metadata.json", "{}");  // by a worker that copied a checkpoint to where it works
  storage_->write("other/.metadata.json", "{}");
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");  // it waits for removals
  EXPECT_TRUE(is_there("trial/checkpoint_000000/model"));
  EXPECT_FALSE(is_there("other/.metadata.json"));
}

// Workers of a cluster work where the experiment is published, and may make links there.
TEST_F(PublisherTest, RemovesNothingBehindALink) {
  const fs::path elsewhere = directory_ / "elsewhere";
  for (const char* const checkpoint : {"checkpoint_000001", "pretrained"}) {
    fs::create_directories(elsewhere / checkpoint);
    std::ofstream(elsewhere / checkpoint / ".metadata.json") << "{}";
  }
  fs::create_directories(directory_ / "published/trial");
  fs::create_directory_symlink(elsewhere, directory_ / "published/trial/link");
  fs::create_directory_symlink(".", directory_ / "published/trial/itself");
  EXPECT_THAT(published_names(*storage_), testing::IsEmpty());
  store_.add(store::ResultRow{.trial = 0, .metrics = "{}"});
  store_.commit();
  start();
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");  // it waits for removals
  EXPECT_TRUE(fs::exists(elsewhere / "checkpoint_000001/.metadata.json"));
  EXPECT_TRUE(fs::exists(elsewhere / "pretrained/.metadata.json"));
}

// A publisher that sleeps at a chosen moment, for so long that a successor takes over.
class SleepingPublisherTest : public PublisherTest {
 protected:
  SleepingPublisherTest() {
    store_.add(store::ResultRow{.trial = 0, .metrics = "{}"});
    store_.commit();
    std::ofstream(experiment_ / "result.json") << "of the first\n";
  }

  void sleep_while(const std::function<void()>& successor_writes) {
    successor_ = take_lease();
    successor_writes();
    clock_ = clock_ + 300;
  }

  std::shared_ptr<Lease> successor_;
};

TEST_F(SleepingPublisherTest, RemovesWhatIsLeftOverButNothingOfItsSuccessor) {
  const std::string theirs[] = {segment_name({.number = 2, .generation = 2}),
                                "a/" + checkpoint_place("checkpoint_000001", 2) + "/model",
                                "a/" + checkpoint_place("own_name", 2) + "/.metadata.json"};
  storage_->write(segment_name({.number = 9}), "left over by a killed controller");
  storage_->write("z/checkpoint_000001/model", "left over too, and removed last");
  storage_->before_list = [&] {
    sleep_while([&] {
      for (const std::string& name : theirs) storage_->write(name, "of the successor");
    });
  };
  start();
  ASSERT_TRUE(eventually([&] { return !is_there("z/checkpoint_000001/model"); }));
  EXPECT_FALSE(is_there(segment_name({.number = 9})));
  for (const std::string& name : theirs) EXPECT_TRUE(is_there(name)) << name;
  publisher_.reset();  // it calls a function of this test
}

TEST_F(SleepingPublisherTest, DoesNotReplaceAResultFileOfItsSuccessor) {
  storage_->before_version_of = [&](const std::string& name) {
    if (name == "result.json" && !successor_) sleep_while([&] { storage_->write(name, "of the successor"); });
  };
  start();
  ASSERT_TRUE(eventually([&] { return !publisher_->lost().empty(); }));
  EXPECT_EQ(storage_->read("result.json"), "of the successor");
}

TEST_F(SleepingPublisherTest, DoesNotSayThatItTriesAgainWhenItHasASuccessor) {
  std::atomic<bool> is_taken_over = false;
  std::atomic<int> looks = 0;  // into the successor's manifest: the last one is for what is to be cleared away
  storage_->before_version_of = [&](const std::string& name) {
    if (name == "result.json" && !successor_) sleep_while([&] { is_taken_over = true; });
  };
  storage_->before_read = [&](const std::string& name) {
    if (name == kManifestFile && is_taken_over) ++looks;
  };
  start();
  ASSERT_TRUE(eventually([&] { return !publisher_->lost().empty() && looks >= 2; }));
  EXPECT_THAT(publisher_->take_messages(), testing::IsEmpty());
  publisher_.reset();  // it calls functions of this test
}

TEST_F(PublisherTest, ARestoreThatBeginsAgainWithANewerManifestLeavesNoSegmentOfTheFirstOneInTheWorkingDirectory) {
  store_.add(store::EventRow{.kind = "function_returned"});
  store_.commit();
  start({}, false);
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  publisher_.reset();
  const Manifest newer = parse_manifest(*storage_->read(kManifestFile), kManifestFile);
  Manifest older = newer;
  older.time = newer.time - 86400;
  SegmentEntry& first = older.segments.back();
  const std::string bytes = *storage_->read(segment_name(first));
  first.number += 100;
  storage_->write(segment_name(first), bytes);
  older.segments.push_back({.number = first.number + 1});  // is not there
  std::atomic<bool> is_over = false;
  std::thread controller([&] {
    while (!is_over) {
      for (const Manifest& manifest : {older, newer}) storage_->write(kManifestFile, to_text(manifest));
    }
  });
  const fs::path elsewhere = directory_ / "elsewhere";
  const auto began_with_the_older = [&]() -> bool {
    fs::remove_all(elsewhere);
    try {
      const std::vector<std::string> notes = working_directory(uri(), {.local_path = elsewhere}).notes;
      return notes.front().ends_with(base::date_text(older.time));
    } catch (const StorageError&) {
      return false;  // it was the older one at each look
    }
  };
  EXPECT_TRUE(eventually(began_with_the_older));
  is_over = true;
  controller.join();
  EXPECT_THAT(base::list_directory(elsewhere / "published"),
              testing::Each(testing::Not(testing::EndsWith(".segment"))));
}

TEST_F(PublisherTest, ARestoreRemovesWhatAKilledOneHasLeftBesideTheWorkingDirectory) {
  const fs::path elsewhere = directory_ / "elsewhere";
  fs::create_directories(elsewhere);
  const pid_t child = ::fork();
  if (child == 0) {
    const base::TemporaryFolder unfinished(elsewhere, ".cadre_restoring");
    std::ofstream(unfinished.path() / "00000001.segment") << "half of it";
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_THAT(base::list_directory(elsewhere), testing::SizeIs(1));
  start({}, false);
  ASSERT_TRUE(eventually([&] { return publisher_->has_published(); }));
  EXPECT_EQ(working_directory(uri(), {.local_path = elsewhere}).path, elsewhere / "published");
  EXPECT_THAT(base::list_directory(elsewhere), testing::ElementsAre("published"));
}

TEST_F(PublisherTest, RemovesAtItsEndWhatAWriterHasLeftThatWasKilled) {
  const fs::path left = directory_ / "published/objects/.cadre_unfinished_00000000_1_1";
  fs::create_directories(left.parent_path());
  std::ofstream(left) << "half of it";
  fs::last_write_time(left, fs::file_time_type::clock::now() - 2min);
  start({}, false);
  EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(PublisherTest, AFolderThatCannotBeReadKeepsNoOtherResultFilesFromBeingPublished) {
  const fs::path unreadable = experiment_ / "trial/private";
  fs::create_directories(unreadable);
  std::ofstream(unreadable / "notes.txt") << "mine";
  std::ofstream(experiment_ / "trial/progress.csv") << "loss\n0.5\n";
  fs::permissions(unreadable, fs::perms::none);
  const bool is_without = test_support::without_privileges([&] {
    start({}, false);
    ASSERT_TRUE(eventually([&] { return is_there("trial/progress.csv"); }));
    EXPECT_EQ(publisher_->finish(60s, [] { return false; }), "");
    EXPECT_FALSE(is_there("trial/private/notes.txt"));
    EXPECT_THAT(publisher_->take_messages(), testing::ElementsAre(testing::HasSubstr("trial/private: ")));
    publisher_.reset();
  });
  fs::permissions(unreadable, fs::perms::owner_all);
  if (!is_without) GTEST_SKIP() << "privileges cannot be dropped here";
}

TEST_F(PublisherTest, AnUploadThatHasBegunIsGivenUpWhenItIsToStop) {
  const fs::path file = directory_ / "large";
  std::ofstream(file) << std::string(std::size_t{9} << 20, 'x');
  std::atomic<bool> stop = false;
  storage_->before_upload = [&](const std::string&) { stop = true; };
  EXPECT_THROW(storage::upload_all(*storage_, {{file, "large"}}, stop, storage::Unreadable::fail), Interrupted);
  EXPECT_FALSE(is_there("large"));
  stop = false;
  EXPECT_THROW(storage::upload_files(*storage_, directory_.path(), {"large"}, "checkpoint", stop), Interrupted);
  EXPECT_FALSE(is_there("checkpoint/large"));
}

}  // namespace
}  // namespace cadre::publish
