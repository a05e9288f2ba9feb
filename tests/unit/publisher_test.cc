#include "publish/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "publish/lease.h"
#include "publish/manifest.h"
#include "storage/storage.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"

namespace cadre::publish {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A directory as a storage; calls a function, once, before it looks for files.
class WatchedStorage : public storage::Storage {
 public:
  explicit WatchedStorage(const fs::path& root)
      : inner_(storage::open_storage({.scheme = "file", .location = root.string()})) {}

  std::function<void()> before_list = [] {};
  std::function<void(const std::string&)> before_version_of = [](const std::string&) {};

  void write(const std::string& name, std::string_view bytes) override { inner_->write(name, bytes); }
  storage::Contents upload(const fs::path& file, const std::string& name) override {
    return inner_->upload(file, name);
  }
  std::optional<std::string> read(const std::string& name) override { return inner_->read(name); }
  storage::Contents download(const std::string& name, const fs::path& file) override {
    return inner_->download(name, file);
  }
  std::optional<storage::StoredFile> find(const std::string& name) override { return inner_->find(name); }
  std::vector<storage::StoredFile> list(const std::string& folder) override {
    std::exchange(before_list, [] {})();
    return inner_->list(folder);
  }
  void remove(const std::string& name) override { inner_->remove(name); }
  void remove_folder(const std::string& folder) override { inner_->remove_folder(folder); }
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
    return inner_->write_if(name, bytes, expected);
  }
  std::optional<storage::Version> upload_if(const fs::path& file, const std::string& name,
                                            const std::optional<storage::Version>& expected) override {
    return inner_->upload_if(file, name, expected);
  }

 private:
  std::unique_ptr<storage::Storage> inner_;
};

// A publisher that sleeps at a chosen moment, for so long that a successor takes over.
class SleepingPublisherTest : public testing::Test {
 protected:
  SleepingPublisherTest() : storage_(std::make_shared<WatchedStorage>(directory_ / "published")) {
    fs::create_directory(directory_ / "experiment");
    auto store = store::ExperimentStore::create(directory_ / "experiment", {"name", "f", "{}"});
    store.add(store::ResultRow{.trial = 0, .metrics = "{}"});
    store.commit();
    std::ofstream(directory_ / "experiment" / "result.json") << "of the first\n";
  }

  std::shared_ptr<Lease> take_lease() {
    LeaseSystem system = LeaseSystem::of_this_process();
    system.seconds = [this] { return clock_.load(); };
    system.is_dead = [](const Holder&) { return true; };
    return std::make_shared<Lease>(Lease::Setting{.storage = storage_, .uri = uri(), .system = std::move(system)});
  }
  storage::Uri uri() const { return {.scheme = "file", .location = (directory_ / "published").string()}; }

  void start() {
    publisher_.emplace(Publisher::Setting{
        .directory = directory_ / "experiment", .uri = uri(), .storage = storage_, .lease = take_lease()});
  }
  void sleep_while(const std::function<void()>& successor_writes) {
    successor_ = take_lease();
    successor_writes();
    clock_ = clock_ + 300;
  }
  bool is_there(const std::string& name) const { return storage_->find(name).has_value(); }

  static testing::AssertionResult eventually(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + 60s; !holds(); std::this_thread::sleep_for(5ms)) {
      if (std::chrono::steady_clock::now() > until) return testing::AssertionFailure() << "it never came so";
    }
    return testing::AssertionSuccess();
  }

  test_support::TemporaryDirectory directory_;
  std::atomic<double> clock_ = 1000;
  std::shared_ptr<WatchedStorage> storage_;
  std::shared_ptr<Lease> successor_;
  std::optional<Publisher> publisher_;
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
}

TEST_F(SleepingPublisherTest, DoesNotReplaceAResultFileOfItsSuccessor) {
  storage_->before_version_of = [&](const std::string& name) {
    if (name == "result.json" && !successor_) sleep_while([&] { storage_->write(name, "of the successor"); });
  };
  start();
  ASSERT_TRUE(eventually([&] { return !publisher_->lost().empty(); }));
  EXPECT_EQ(storage_->read("result.json"), "of the successor");
}

}  // namespace
}  // namespace cadre::publish
