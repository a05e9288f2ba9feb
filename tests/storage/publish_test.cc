// Published experiments: data that survive the loss of the local disk, and data that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "base/directory.h"
#include "cadre/tune.h"
#include "object_server.h"
#include "publish/manifest.h"
#include "publish/restore.h"
#include "storage/remote_directory.h"
#include "store/experiment_reader.h"
#include "store/segment.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "survival/controller_process.h"
#include "survival/invariants.h"
#include "survival/survivor.h"

namespace cadre::storage_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using survival::ControllerProcess;
using survival::Ended;
using test_support::content_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kPatience = 120s;

// An experiment of tests/survival that is published in a storage.
class Experiment {
 public:
  explicit Experiment(const std::string& folder, survival::Setting setting = {})
      : uri_(folder.substr(0, folder.find('?')) + "/experiment" +
             folder.substr(std::min(folder.size(), folder.find('?')))),
        setting_(setting) {}

  const std::string& uri() const { return uri_; }
  storage::Uri parsed_uri() const { return storage::parse_uri(uri_); }
  fs::path local() const { return directory_.path() / "home" / "cadre_results" / "experiment"; }
  const survival::Setting& setting() const { return setting_; }
  std::string said() const { return content_of(directory_ / "said"); }

  // Sets how often the lease is renewed; it is stale after six times as long.
  void renew_every(double seconds) { period_ = seconds; }

  // Calls it by its path, as on a network file system, which it only pretends to be.
  void call_by_path() { called_ = parsed_uri().location; }

  std::unique_ptr<ControllerProcess> start() const {
    std::vector<std::string> environment{"HOME=" + (directory_ / "home").string()};
    if (period_ > 0) environment.push_back("CADRE_LEASE_PERIOD=" + std::to_string(period_));
    if (!called_.empty())
      environment.push_back("CADRE_NETWORK_FILE_SYSTEM=" + called_.parent_path().parent_path().string());
    return std::make_unique<ControllerProcess>(
        survival::ControllerOptions{.experiment = called_.empty() ? fs::path(uri_) : called_,
                                    .setting = setting_,
                                    .slots = 4,
                                    .environment = environment,
                                    .said = directory_ / "said"});
  }
  Ended run_to_the_end() const {
    const auto ended = start()->wait(kPatience);
    return ended.value_or(Ended{.code = -1, .message = "it does not end"});
  }
  void lose_the_local_disk() const { fs::remove_all(directory_ / "home"); }

  // Returns the published manifest; empty if nothing is published.
  std::optional<publish::Manifest> published() const {
    const auto storage = storage::open_storage(parsed_uri());
    const auto text = storage->read(publish::kManifestFile);
    if (!text) return std::nullopt;
    return publish::parse_manifest(*text, uri_);
  }
  std::int64_t published_rows() const {
    const auto manifest = published();
    return manifest ? manifest->position().sequence : 0;
  }

  std::vector<std::string> faults(const survival::Expectation& expectation) const {
    return survival::faults_of(local(), setting_, expectation);
  }

 private:
  TemporaryDirectory directory_;
  std::string uri_;
  survival::Setting setting_;
  fs::path called_;  // empty: called by its URI
  double period_ = 0;
};

template <class Condition>
::testing::AssertionResult eventually(const Condition& holds) {
  for (const auto until = std::chrono::steady_clock::now() + kPatience; !holds(); std::this_thread::sleep_for(10ms)) {
    if (std::chrono::steady_clock::now() > until) return ::testing::AssertionFailure() << "it never came so";
  }
  return ::testing::AssertionSuccess();
}

// Expects the published state to be complete: each checkpoint can be read and is what its trial wrote.
void expect_whole(const storage::Uri& uri) {
  const auto copy = publish::reading_copy(uri);
  const store::ExperimentReader reader(*copy, store::ExperimentReader::Check::whole);
  for (const store::CheckpointRow& row : reader.checkpoints()) {
    const auto files = Checkpoint::from_directory(*copy / row.directory).as_directory();
    EXPECT_NE(files.path(), *copy / row.directory);
    const auto state = survival::read_state(files.path());
    ASSERT_TRUE(state) << row.directory;
    EXPECT_EQ(state->step, row.step) << row.directory;
  }
}

// Returns the outcome of an experiment with this setting that nothing disturbs.
survival::Outcome undisturbed(const survival::Setting& setting) {
  const TemporaryDirectory directory;
  const Experiment experiment("file://" + directory.path().string(), setting);
  const Ended ended = experiment.run_to_the_end();
  EXPECT_EQ(ended.code, Ended::finished) << ended.message;
  return survival::outcome_of(experiment.local());
}

// Tests with one kind of storage as their parameter.
class Published : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string_view kind = GetParam();
    if (kind == "s3") server_.emplace(Service::s3);
    if (kind == "google") server_.emplace(Service::google);
    if (kind == "azure") server_.emplace(Service::azure);
  }
  std::string folder(const std::string& number = "") {
    return server_ ? server_->uri("folder" + number) : "file://" + (directory_ / ("folder" + number)).string();
  }
  fs::path file(const std::string& name) const { return directory_ / "folder" / "experiment" / name; }

  std::optional<ObjectServer> server_;
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Storages, Published, testing::Values("file", "s3"),
                         [](const auto& one) { return std::string(one.param); });

// Tests of conditional writes and of removals.
class PublishedAnywhere : public Published {
 protected:
  // These emulators take ten times as long.
  bool is_slow() const { return GetParam() == std::string_view("google") || GetParam() == std::string_view("azure"); }
};
INSTANTIATE_TEST_SUITE_P(Storages, PublishedAnywhere, testing::Values("file", "s3", "google", "azure"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(PublishedAnywhere, HasEverythingAtItsEnd) {
  const Experiment experiment(folder());
  const Ended ended = experiment.run_to_the_end();
  ASSERT_EQ(ended.code, Ended::finished) << ended.message;
  EXPECT_THAT(experiment.faults({.finished = true}), IsEmpty());
  EXPECT_EQ(experiment.published()->position(), store::position_of(experiment.local()));
  expect_whole(experiment.parsed_uri());
  const auto storage = storage::open_storage(experiment.parsed_uri());
  EXPECT_EQ(storage->read("pbt_global.txt"), content_of(experiment.local() / "pbt_global.txt"));
  EXPECT_THAT(*storage->read(publish::kLeaseFile), HasSubstr("\"is_released\": true"));
  const tune::ResultGrid there = tune::ResultGrid::from_directory(experiment.uri());
  const tune::ResultGrid here = tune::ResultGrid::from_directory(experiment.local());
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(there[i].config, here[i].config);
    EXPECT_EQ(there[i].metrics_history(), here[i].metrics_history());
    const fs::path trial = here[i].path.filename();
    EXPECT_EQ(storage->read((trial / "result.json").string()), content_of(here[i].path / "result.json"));
    const TemporaryDirectory target;
    there[i].checkpoint->to_directory(target.path());
    EXPECT_EQ(survival::read_state(target.path())->step, experiment.setting().steps);
  }
}

TEST_P(PublishedAnywhere, GoesOnFromThereWhenTheLocalDiskIsLost) {
  const survival::Setting setting{.steps = 600, .interval = 20};
  const survival::Outcome outcome = undisturbed(setting);
  const Experiment experiment(folder(), setting);
  std::mt19937 random(3);
  std::int64_t before = 0;
  for (int kill = 0; kill < (is_slow() ? 2 : 4); ++kill) {
    auto controller = experiment.start();
    const std::int64_t wanted = before + 1 + static_cast<std::int64_t>(random() % 100);
    ASSERT_TRUE(eventually([&] { return controller->has_ended() || experiment.published_rows() >= wanted; }));
    if (controller->has_ended() && kill > 0) break;  // much was published at once
    ASSERT_FALSE(controller->has_ended()) << experiment.said() << controller->wait(0s)->message << ", "
                                          << experiment.published_rows() << " of " << wanted;
    controller->kill(SIGKILL);
    controller.reset();
    const publish::Manifest manifest = *experiment.published();
    expect_whole(experiment.parsed_uri());
    experiment.lose_the_local_disk();
    before = manifest.position().sequence;
    const publish::WorkingDirectory working =
        publish::working_directory(experiment.parsed_uri(), {.local_path = experiment.local().parent_path()});
    EXPECT_EQ(store::position_of(working.path), manifest.position()) << "what was published is what is there";
  }
  const Ended ended = experiment.run_to_the_end();
  ASSERT_EQ(ended.code, Ended::finished) << ended.message;
  EXPECT_EQ(survival::outcome_of(experiment.local()), outcome);
  EXPECT_EQ(experiment.published()->position(), store::position_of(experiment.local()));
  expect_whole(experiment.parsed_uri());
  if (!server_) EXPECT_THAT(survival::still_running(5s), IsEmpty());
}

// Kills the controller of a new experiment when more than `rows` rows are published. Returns the position of its local
// store then.
store::Position position_when_killed(const Experiment& experiment, std::int64_t rows) {
  const auto controller = experiment.start();
  EXPECT_TRUE(eventually([&] { return experiment.published_rows() > rows; }));
  controller->kill(SIGKILL);
  EXPECT_TRUE(controller->wait(kPatience));
  return store::position_of(experiment.local());
}

TEST_P(Published, GoesOnInItsWorkingDirectoryWhereThatHasMore) {
  const survival::Setting setting{.steps = 300, .interval = 20};
  const Experiment experiment(folder(), setting);
  const store::Position before = position_when_killed(experiment, 50);
  const Ended ended = experiment.run_to_the_end();
  ASSERT_EQ(ended.code, Ended::finished) << ended.message;
  EXPECT_TRUE(store::has_passed(experiment.local(), before)) << "nothing that was reported is lost";
  EXPECT_THAT(experiment.faults({.finished = true, .outcome = undisturbed(setting)}), IsEmpty());
  expect_whole(experiment.parsed_uri());
}

// A kill before anything was published leaves only the working directory; the next start of the program finds it.
TEST_P(Published, GoesOnInItsWorkingDirectoryWhereNothingWasPublished) {
  const survival::Setting setting{.steps = 100, .interval = 20};
  const Experiment experiment(folder(), setting);
  const store::Position before = position_when_killed(experiment, 20);
  storage::open_storage(experiment.parsed_uri())->remove_folder("");
  const Ended ended = experiment.run_to_the_end();
  ASSERT_EQ(ended.code, Ended::finished) << ended.message;
  EXPECT_TRUE(store::has_passed(experiment.local(), before)) << "nothing that was reported is lost";
  EXPECT_THAT(experiment.faults({.finished = true, .outcome = undisturbed(setting)}), IsEmpty());
  expect_whole(experiment.parsed_uri());
}

// A bucket may have any names, a directory only those that lead nowhere else.
TEST_P(PublishedAnywhere, ANameThatLeadsOutOfTheDirectoryIsRefused) {
  if (GetParam() != std::string_view("azure")) GTEST_SKIP() << "this server takes no such name";
  const Experiment experiment(folder(), {.steps = 300, .interval = 20});
  position_when_killed(experiment, 50);
  experiment.lose_the_local_disk();
  storage::open_storage(experiment.parsed_uri())->write("objects/../../victim", "x");
  const Ended ended = experiment.run_to_the_end();
  EXPECT_NE(ended.code, Ended::finished);
  EXPECT_THAT(ended.message, testing::HasSubstr("\"objects/../../victim\""));
  EXPECT_FALSE(fs::exists(experiment.local().parent_path() / "victim"));
}

// ---- A controller that was cut off and comes back

// Returns the places of the files of all listed checkpoints, each with a slash at its end.
std::vector<std::string> listed_places(const storage::Uri& uri) {
  const auto copy = publish::reading_copy(uri);
  std::vector<std::string> places;
  for (const store::CheckpointRow& row :
       store::ExperimentReader(*copy, store::ExperimentReader::Check::rows).checkpoints()) {
    const auto remote = storage::remote_files(*copy / row.directory);
    places.push_back((remote && !remote->place.empty() ? remote->place : row.directory) + "/");
  }
  return places;
}

// Returns all published files, except those that a stopped controller was uploading: they are there and not listed.
std::map<std::string, std::string> contents_of(const storage::Uri& uri) {
  const auto storage = storage::open_storage(uri);
  const std::vector<std::string> places = listed_places(uri);
  std::map<std::string, std::string> contents;
  for (const storage::StoredFile& file : storage->list("")) {
    const bool is_listed =
        std::ranges::any_of(places, [&](const std::string& place) { return file.name.starts_with(place); });
    if (is_listed || file.name.find("checkpoint_") == file.name.npos) contents[file.name] = *storage->read(file.name);
  }
  return contents;
}

// Returns names of files that are in only one of the two, or have different contents.
std::set<std::string> changed(const std::map<std::string, std::string>& before,
                              const std::map<std::string, std::string>& after) {
  std::set<std::string> names;
  for (const auto& [name, text] : before) {
    const auto found = after.find(name);
    // Only the first machine's trials have written it; its successor has not published it.
    if (name.ends_with("/witness")) continue;
    if (found == after.end() || found->second != text) names.insert(name);
  }
  for (const auto& [name, text] : after) {
    if (!before.contains(name)) names.insert(name + " (new)");
  }
  return names;
}

// CADRE_TAKE_OVERS sets the number of take-overs.
TEST_P(PublishedAnywhere, IsNotChangedByAControllerThatComesBack) {
  const char* const wanted = std::getenv("CADRE_TAKE_OVERS");
  const int take_overs = wanted != nullptr ? std::atoi(wanted) : is_slow() ? 1 : 2;
  const survival::Setting setting{.steps = 200, .interval = 20};
  for (int i = 0; i < take_overs; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    const std::string place = folder(std::to_string(i));
    Experiment first(place, setting);
    first.renew_every(0.2);
    auto frozen = first.start();
    const auto rows = static_cast<std::int64_t>(1 + random() % 100);
    ASSERT_TRUE(eventually([&] { return frozen->has_ended() || first.published_rows() >= rows; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
    frozen->kill(SIGSTOP);

    Experiment second(place, setting);
    second.renew_every(0.2);
    Ended ended;
    ASSERT_TRUE(eventually([&] {
      ended = second.run_to_the_end();
      if (ended.message.find("has been locked by another process") != std::string::npos) {  // it holds the lock
        frozen->kill(SIGCONT);
        std::this_thread::sleep_for(1ms);
        frozen->kill(SIGSTOP);
        return false;
      }
      return ended.message.find("run already") == std::string::npos;
    }));
    ASSERT_EQ(ended.code, Ended::finished) << ended.message;
    EXPECT_EQ(second.published()->position(), store::position_of(second.local()));
    const auto published = contents_of(second.parsed_uri());

    frozen->kill(SIGCONT);
    const auto returned = frozen->wait(kPatience);
    ASSERT_TRUE(returned) << "take-over " << i;
    if (returned->code == Ended::finished) continue;  // it had ended before it was stopped
    EXPECT_EQ(returned->code, Ended::storage_error) << returned->message;
    EXPECT_THAT(returned->message, HasSubstr("was taken over by")) << "take-over " << i;
    EXPECT_THAT(first.said(), Not(HasSubstr("Everything is published")));
    EXPECT_THAT(changed(published, contents_of(second.parsed_uri())), IsEmpty()) << "take-over " << i;
    expect_whole(second.parsed_uri());
  }
}

// ---- Without a server

class Directory : public testing::Test {
 protected:
  std::string folder() const { return "file://" + (directory_ / "folder").string(); }
  fs::path published(const std::string& name) const { return directory_ / "folder" / "experiment" / name; }
  TemporaryDirectory directory_;
};

TEST_F(Directory, ADamagedOrMissingSegmentIsRefusedByItsName) {
  const Experiment experiment(folder());
  ASSERT_EQ(experiment.run_to_the_end().code, Ended::finished);
  experiment.lose_the_local_disk();
  const std::string name = publish::segment_name(experiment.published()->segments.back());
  const std::string whole = content_of(published(name));
  const auto said = [&] {
    return test_support::message_of<StorageError>([&] { publish::reading_copy(experiment.parsed_uri()); });
  };
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_bytes(published(name), bytes);
    EXPECT_THAT(said(), AllOf(HasSubstr(name), HasSubstr("damaged")));
  }
  write_bytes(published(name), whole.substr(0, whole.size() - 1));
  EXPECT_THAT(said(), AllOf(HasSubstr(name), HasSubstr("damaged")));
  fs::remove(published(name));
  EXPECT_THAT(said(), AllOf(HasSubstr(name), HasSubstr("missing")));
  write_bytes(published(name), whole);
  expect_whole(experiment.parsed_uri());
  std::string manifest = content_of(published(publish::kManifestFile));
  manifest[manifest.find("sequence") + 12] ^= 1;
  write_bytes(published(publish::kManifestFile), manifest);
  EXPECT_THAT(said(), AllOf(HasSubstr(publish::kManifestFile), HasSubstr("damaged")));
}

TEST_F(Directory, APathOnANetworkFileSystemIsPublishedLikeAUri) {
  const survival::Setting setting{.steps = 200, .interval = 20};
  Experiment experiment(folder(), setting);
  experiment.call_by_path();
  auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 50; }));
  controller->kill(SIGKILL);
  controller.reset();
  EXPECT_FALSE(fs::exists(published("experiment.db"))) << "no store lies there";
  experiment.lose_the_local_disk();
  const Ended ended = experiment.run_to_the_end();
  ASSERT_EQ(ended.code, Ended::finished) << ended.message;
  EXPECT_EQ(survival::outcome_of(experiment.local()), undisturbed(setting));
  EXPECT_EQ(tune::ResultGrid::from_directory(experiment.parsed_uri().location).size(), 4u);
}

TEST_F(Directory, TwoControllersDoNotPublishOneExperiment) {
  const Experiment first(folder(), {.steps = 100'000});
  const auto controller = first.start();
  ASSERT_TRUE(eventually([&] { return first.published_rows() > 0; }));
  const Experiment second(folder(), first.setting());
  const Ended ended = second.run_to_the_end();
  EXPECT_EQ(ended.code, Ended::storage_error) << ended.message;
  EXPECT_THAT(ended.message, AllOf(HasSubstr("run already"), HasSubstr(std::to_string(controller->process()))));
  EXPECT_FALSE(controller->has_ended());
}

TEST_F(Directory, AnOutdatedWorkingDirectoryIsPutAside) {
  const Experiment experiment(folder(), {.steps = 300, .interval = 20});
  auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 50; }));
  controller->kill(SIGKILL);
  controller.reset();
  const fs::path old = directory_ / "old";
  fs::rename(experiment.local(), old);
  ASSERT_EQ(experiment.run_to_the_end().code, Ended::finished);
  fs::remove_all(experiment.local());
  fs::rename(old, experiment.local());
  EXPECT_THAT(test_support::message_of<StorageError>([&] { publish::Publication::resume(experiment.local()); }),
              HasSubstr("continued elsewhere"));
  const publish::WorkingDirectory working =
      publish::working_directory(experiment.parsed_uri(), {.local_path = experiment.local().parent_path()});
  EXPECT_EQ(store::position_of(working.path), experiment.published()->position());
  ASSERT_FALSE(working.notes.empty());
  EXPECT_THAT(working.notes[0], HasSubstr(".outdated_"));
}

TEST_F(Directory, OnlyWhatATrialMayGoOnFromStaysOnTheLocalDisk) {
  const Experiment experiment(folder(), {.population = 2, .steps = 40, .interval = 4, .num_to_keep = 20});
  ASSERT_EQ(experiment.run_to_the_end().code, Ended::finished);
  std::size_t remote = 0;
  const store::ExperimentReader reader(experiment.local(), store::ExperimentReader::Check::whole);
  const auto rows = reader.checkpoints();
  for (const store::CheckpointRow& row : rows)
    remote += storage::remote_files(experiment.local() / row.directory) ? 1 : 0;
  EXPECT_GE(rows.size(), 40u);
  EXPECT_GT(remote, 0u);
  expect_whole(experiment.parsed_uri());
  // A read from the working directory gives the same.
  for (const store::CheckpointRow& row : rows) {
    const auto files = Checkpoint::from_directory(experiment.local() / row.directory).as_directory();
    EXPECT_EQ(survival::read_state(files.path())->step, row.step);
  }
}

TEST_F(Directory, NothingThatNobodyListsStaysPublished) {
  const Experiment experiment(folder(), {.steps = 200, .interval = 20});
  auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 50; }));
  controller->kill(SIGKILL);
  controller.reset();
  const auto storage = storage::open_storage(experiment.parsed_uri());
  storage->write("00000_x/checkpoint_900000/state", "left over");
  storage->write("00000_x/checkpoint_900000.generation_2/state", "left over");
  storage->write(publish::segment_name({.number = 900'000}), "left over");
  storage->write(publish::segment_name({.number = 900'000, .generation = 2}), "left over");
  ASSERT_EQ(experiment.run_to_the_end().code, Ended::finished);
  std::set<std::string> listed;
  const publish::Manifest manifest = *experiment.published();
  for (const publish::SegmentEntry& entry : manifest.segments) listed.insert(publish::segment_name(entry));
  const store::ExperimentReader reader(experiment.local(), store::ExperimentReader::Check::whole);
  for (const store::CheckpointRow& row : reader.checkpoints())
    listed.insert(publish::checkpoint_place(row.directory, manifest.generation_of(row.id)));
  for (const storage::StoredFile& file : storage->list("")) {
    const bool is_checkpoint = file.name.find("/checkpoint_") != std::string::npos;
    const bool is_segment = file.name.starts_with("store/");
    if (is_checkpoint) EXPECT_TRUE(listed.contains(file.name.substr(0, file.name.rfind('/')))) << file.name;
    if (is_segment) EXPECT_TRUE(listed.contains(file.name)) << file.name;
  }
}

// ---- Storages that cannot be used are refused before anything runs

TEST(BadStorage, IsRefusedBeforeAnythingRuns) {
  ObjectServer server;
  const auto said = [](const std::string& folder) {
    const Experiment experiment(folder);
    const Ended ended = experiment.run_to_the_end();
    EXPECT_EQ(ended.code, Ended::other_error) << ended.message;
    EXPECT_FALSE(fs::exists(experiment.local())) << "nothing is left of it";
    return ended.message;
  };
  EXPECT_THAT(said("s3://no-such-bucket/folder"),
              AllOf(HasSubstr("s3://no-such-bucket/folder/experiment"), HasSubstr("make the bucket")));
  EXPECT_THAT(said("ftp://host/folder"), HasSubstr("there are file, s3"));
  EXPECT_THAT(said("s3://key:hunter2@bucket/folder"), AllOf(HasSubstr("secret"), Not(HasSubstr("hunter2"))));
  server.fail("denied");
  EXPECT_THAT(said(server.uri("folder")), HasSubstr("right to list, read, write and delete"));
  server.fail("expired");
  EXPECT_THAT(said(server.uri("folder")), HasSubstr("renew"));
  server.fail("refuse");
  EXPECT_THAT(said(server.uri("folder")), HasSubstr("cannot be reached"));
}

TEST(BadStorage, FaultsOnTheWayCostTimeOnly) {
  ObjectServer server;
  const survival::Setting setting{.steps = 300, .interval = 20};
  const Experiment experiment(server.uri("folder"), setting);
  const auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 0; }));
  server.mix(0.3, 5);
  const auto ended = controller->wait(kPatience);
  server.well();
  ASSERT_TRUE(ended);
  ASSERT_EQ(ended->code, Ended::finished) << ended->message;
  EXPECT_THAT(experiment.faults({.finished = true}), IsEmpty());
  EXPECT_EQ(experiment.published()->position(), store::position_of(experiment.local()));
  expect_whole(experiment.parsed_uri());
}

TEST(BadStorage, CredentialsThatExpireAreSaidOnceAndTriedAgain) {
  ObjectServer server;
  const Experiment experiment(server.uri("folder"), {.steps = 100'000, .verbose = true});
  const auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 0; }));
  server.fail("expired");
  ASSERT_TRUE(eventually([&] { return experiment.said().find("renew") != std::string::npos; })) << experiment.said();
  const std::int64_t local = store::position_of(experiment.local()).sequence;
  ASSERT_TRUE(eventually([&] { return store::position_of(experiment.local()).sequence > local + 100; }))
      << "the experiment goes on";
  server.well();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > local; }));
  ASSERT_TRUE(eventually([&] { return experiment.said().find("answers again") != std::string::npos; }));
  const std::string said = experiment.said();
  EXPECT_EQ(said.find("Nothing is published"), said.rfind("Nothing is published")) << said;
}

TEST(BadStorage, CtrlCDoesNotWaitForAStorageThatIsGone) {
  ObjectServer server;
  const Experiment experiment(server.uri("folder"), {.steps = 100'000, .verbose = true});
  const auto controller = experiment.start();
  ASSERT_TRUE(eventually([&] { return experiment.published_rows() > 0; }));
  server.fail("500");
  controller->kill(SIGINT);
  ASSERT_TRUE(eventually([&] { return experiment.said().find("Publishing what is left") != std::string::npos; }));
  EXPECT_FALSE(controller->has_ended());
  std::this_thread::sleep_for(500ms);  // a second signal that follows at once counts as the first one
  controller->kill(SIGINT);
  const auto ended = controller->wait(kPatience);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->code == Ended::interrupted || ended->code == -SIGINT) << ended->code;
  server.well();
  publish::Publication::resume(experiment.local());  // nothing is lost
}

}  // namespace
}  // namespace cadre::storage_tests
