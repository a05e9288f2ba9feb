// Crafted directories of experiments: reading and continuing them changes nothing outside of them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "cadre/tune.h"
#include "publish/manifest.h"
#include "publish/restore.h"
#include "storage/remote_directory.h"
#include "store/checked_rows.h"
#include "store/experiment_lock.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "store/segment.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "survival/controller_process.h"
#include "survival/survivor.h"

namespace cadre::storage_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using survival::ControllerProcess;
using survival::Ended;
using test_support::content_of;
using test_support::message_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using testing::HasSubstr;

// A folder with an experiment, and beside it a "victim" directory, which must not change.
class HostileDirectory : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(victim() / "checkpoint_000000");
    write_bytes(victim() / "file", "precious");
    write_bytes(victim() / "checkpoint_000000" / "file", "precious too");
    before_ = contents(victim());
  }
  void TearDown() override { EXPECT_TRUE(contents(victim()) == before_) << "something outside has changed"; }

  fs::path experiment() const { return directory_ / "results" / "experiment"; }
  fs::path victim() const { return directory_ / "victim"; }
  // Paths that lead from the experiment's directory to the victim.
  std::vector<std::string> ways() const {
    return {victim().string(), "../../victim", "a/../../../victim", "./../../victim"};
  }

  template <class Row>
  void put(const Row& row) const {
    store::Database database(experiment() / "experiment.db", store::Database::Access::read_write);
    store::RowWriter<Row>(database, store::WriteMode::replace).write(row);
  }
  void make_store() const {
    fs::remove_all(experiment());
    fs::create_directories(experiment());
    store::ExperimentStore store = store::ExperimentStore::create(experiment(), {"experiment", "train", "{}"});
    store.add(store::EventRow{.kind = "controller_started", .data = "{}"});
    store.commit();
  }
  static std::map<std::string, std::string> contents(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root))
      files[entry.path()] = entry.is_regular_file() ? content_of(entry.path()) : "";
    return files;
  }

  TemporaryDirectory directory_;

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(HostileDirectory, ItsRowsNameNoDirectoryElsewhere) {
  for (const std::string& way : ways()) {
    make_store();
    put(store::TrialRow{.trial = 0, .trial_id = "00000", .status = "TERMINATED", .config = "{}", .directory = way});
    EXPECT_THAT(message_of<StorageError>(
                    [&] { store::ExperimentReader(experiment(), store::ExperimentReader::Check::whole).trials(); }),
                HasSubstr("none inside its directory"));
    make_store();
    put(store::CheckpointRow{.id = 0, .directory = way, .synced = true, .manifest = R"({"file": {"size": 8}})"});
    EXPECT_THAT(message_of<StorageError>([&] {
                  store::ExperimentReader(experiment(), store::ExperimentReader::Check::whole).checkpoints();
                }),
                HasSubstr("none inside its directory"));
    EXPECT_THROW(tune::ResultGrid::from_directory(experiment()), Error);
  }
}

// SQLite would run queries or expressions of the store's author in anything but a plain table.
TEST_F(HostileDirectory, ItsStoreHasPlainTablesOnly) {
  for (const char* const sql :
       {"DROP TABLE results; CREATE VIEW results AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS sequence FROM n",
        "CREATE TRIGGER one AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIRTUAL TABLE texts USING fts5(text)", "CREATE TABLE computed(a, b AS (a || a))",
        "CREATE TABLE checked(a CHECK (a > 1))", "CREATE INDEX by_kind ON events(kind)"}) {
    make_store();
    {
      sqlite3* handle = nullptr;
      ASSERT_EQ(sqlite3_open((experiment() / "experiment.db").c_str(), &handle), SQLITE_OK);
      ASSERT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
      sqlite3_close(handle);
    }
    using Reader = store::ExperimentReader;
    for (const std::function<void()>& open :
         {std::function<void()>([&] { const Reader reader(experiment(), Reader::Check::whole); }),
          std::function<void()>([&] { const Reader reader(experiment(), Reader::Check::rows); }),
          std::function<void()>([&] { store::ExperimentStore::open(experiment()); })})
      EXPECT_THAT(message_of<StorageError>(open), HasSubstr("which Cadre does not make")) << sql;
  }
}

std::string big_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// Returns a page of a table's tree, all of whose hundred children are the same page.
std::string page_of_one_child(std::size_t size, std::uint32_t child) {
  constexpr std::size_t children = 100;
  constexpr std::size_t cell = 5;  // the child's number, and a key of one byte
  std::string page = "\x05" + big_endian(0, 2) + big_endian(children, 2) + big_endian(size - children * cell, 2) +
                     big_endian(0, 1) + big_endian(child, 4);
  for (std::size_t i = 0; i < children; ++i) page += big_endian(size - (i + 1) * cell, 2);
  page.resize(size - children * cell, '\0');
  for (std::size_t i = 0; i < children; ++i) page += big_endian(child, 4) + "\x01";
  return page;
}

// Pages refer to the same pages again and again, so there are more rows than can ever be read.
TEST_F(HostileDirectory, AStoreWithRowsWithoutEndIsRefused) {
  make_store();
  put(store::TrialRow{.trial = 0, .trial_id = "00000", .status = "TERMINATED", .config = "{}", .directory = "trial"});
  const fs::path file = experiment() / "experiment.db";
  std::uint32_t root = 0;
  {
    const store::Database database(file, store::Database::Access::read_write);
    store::Statement statement(database, "SELECT rootpage FROM sqlite_schema WHERE name = 'trials'");
    ASSERT_TRUE(statement.step());
    root = static_cast<std::uint32_t>(statement.integer(0));
  }
  std::string bytes = content_of(file);
  const std::size_t size = 256 * static_cast<unsigned char>(bytes[16]) + static_cast<unsigned char>(bytes[17]);
  const std::string leaf = bytes.substr((root - 1) * size, size);
  auto next = static_cast<std::uint32_t>(bytes.size() / size) + 1;
  bytes.replace((root - 1) * size, size, page_of_one_child(size, next));
  for (int level = 0; level < 6; ++level) bytes += page_of_one_child(size, ++next);
  bytes += leaf;
  bytes.replace(28, 4, big_endian(next, 4));
  write_bytes(file, bytes);
  using Reader = store::ExperimentReader;
  EXPECT_THAT(message_of<StorageError>([&] { Reader(experiment(), Reader::Check::rows).trials(); }),
              HasSubstr("more rows than its size allows"));
  EXPECT_THROW(Reader(experiment(), Reader::Check::whole), StorageError);
  EXPECT_THROW(store::ExperimentStore::open(experiment()), StorageError);
  EXPECT_THROW(tune::ResultGrid::from_directory(experiment()), StorageError);
}

TEST_F(HostileDirectory, AListOfFilesThatAreElsewhereWritesNothingOutside) {
  const fs::path bucket = directory_ / "bucket";
  const fs::path checkpoint = experiment() / "trial" / "checkpoint_000000";
  for (const std::string& way : ways()) {
    fs::create_directories(checkpoint);
    fs::create_directories(bucket / "experiment" / "trial" / "checkpoint_000000");
    storage::write_published_to(experiment(), storage::parse_uri("file://" + bucket.string() + "/experiment"));
    for (const bool is_place : {false, true}) {
      const Dict files{{is_place ? "file" : way + "/file", Dict{{"size", 4}}}};
      const Dict list{{"format", 3}, {"files", files}, {"place", is_place ? way : ""}};
      write_bytes(checkpoint / ".remote.json", base::to_json(list));
      EXPECT_THAT(message_of<StorageError>([&] { Checkpoint::from_directory(checkpoint).as_directory(); }),
                  HasSubstr("none inside its directory"));
      EXPECT_THAT(message_of<StorageError>([&] { storage::fetch(checkpoint); }),
                  HasSubstr("none inside its directory"));
    }
  }
}

TEST_F(HostileDirectory, APublishedOneIsReadWithoutMakingFilesElsewhere) {
  const fs::path bucket = directory_ / "bucket" / "experiment";
  for (const std::string& way : ways()) {
    make_store();
    fs::remove_all(bucket);
    fs::create_directories(bucket / "store");
    const fs::path segment = bucket / "store" / "00000001.segment";
    store::SegmentWriter writer(experiment());
    // Written after the SegmentWriter exists, as rows are while a segment is written.
    put(store::CheckpointRow{.id = 0, .directory = way, .synced = true, .manifest = R"({"new": {"size": 8}})"});
    try {
      const auto written = writer.write(segment, {.number = 1, .whole_tables = true});
      ASSERT_TRUE(written);
      const std::string bytes = content_of(segment);
      const publish::Manifest manifest{.generation = 1,
                                       .writer = "0",
                                       .segments = {{.number = 1,
                                                     .position = written->position,
                                                     .bytes = static_cast<std::int64_t>(bytes.size()),
                                                     .xxh3 = fmt::format("{:016x}", base::checksum_of(bytes))}}};
      write_bytes(bucket / "published.json", publish::to_text(manifest));
      EXPECT_THROW(publish::reading_copy(storage::parse_uri("file://" + bucket.string())), StorageError) << way;
    } catch (const StorageError& error) {  // refused before it is published
      EXPECT_THAT(error.what(), HasSubstr("none inside its directory"));
    }
  }
}

// Interrupts an experiment, changes its store and continues it.
TEST_F(HostileDirectory, ContinuingItRemovesNothingElsewhere) {
  for (const std::string& way : ways()) {
    fs::remove_all(experiment());
    fs::create_directories(experiment().parent_path());
    const survival::ControllerOptions options{
        .experiment = experiment(), .setting = {.steps = 100'000, .interval = 20}, .said = directory_ / "said"};
    {
      ControllerProcess controller(options);
      while (!controller.has_ended() && !fs::exists(experiment() / "experiment.db")) std::this_thread::sleep_for(10ms);
      std::this_thread::sleep_for(300ms);
      controller.kill(SIGINT);
      ASSERT_TRUE(controller.wait(60s));
    }
    {
      store::Database database(experiment() / "experiment.db", store::Database::Access::read_write);
      auto snapshot = store::RowReader<store::Snapshot>(database, "").first();
      ASSERT_TRUE(snapshot);
      Dict state = base::parse_json(snapshot->state, "state").dict();
      for (auto& [key, value] : state) {
        if (key == "deletions") value = cadre::list(way);
      }
      snapshot->state = base::to_json(state);
      store::RowWriter<store::Snapshot>(database, store::WriteMode::replace).write(*snapshot);
    }
    ControllerProcess controller(options);
    const auto ended = controller.wait(60s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, Ended::storage_error) << ended->message;
    EXPECT_THAT(ended->message, HasSubstr("none inside its directory"));
  }
}

// Links in place of files that Cadre writes.
TEST_F(HostileDirectory, NothingIsWrittenThroughLinks) {
  for (const char* const name : {".lock", "experiment.db.new", "progress.csv", "params.json.tmp"}) {
    SCOPED_TRACE(name);
    make_store();
    fs::remove(experiment() / name);
    fs::create_symlink(victim() / "file", experiment() / name);
    const std::string file = name;
    if (file == ".lock") EXPECT_THROW(store::ExperimentLock lock(experiment()), StorageError);
    if (file == "progress.csv") EXPECT_THROW(base::AppendFile(experiment() / file).append("x"), StorageError);
    if (file == "params.json.tmp") EXPECT_THROW(base::replace_file(experiment() / "params.json", "x"), StorageError);
    if (file == "experiment.db.new") {
      fs::remove(experiment() / "experiment.db");
      fs::remove(experiment() / "experiment.db-wal");
      store::ExperimentStore::create(experiment(), {});  // removes the link and not its target
    }
  }
  ASSERT_EQ(::mkfifo((experiment() / "pipe").c_str(), 0666), 0);
  EXPECT_THAT(message_of<StorageError>([&] { base::AppendFile(experiment() / "pipe").append("x"); }),
              HasSubstr("a pipe"));
}

TEST_F(HostileDirectory, NobodyWaitsForALockThatIsAPipe) {
  make_store();
  const fs::path path = experiment() / ".lock";
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  EXPECT_EQ(store::ExperimentLock::holder(experiment()), std::nullopt);
  const base::FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(store::ExperimentLock::holder(experiment()), testing::Optional(HasSubstr("not said who it is")));
}

// A link in place of a trial's directory.
TEST_F(HostileDirectory, ContinuingItFollowsNoLinksToRemoveWhatIsBehind) {
  fs::create_directories(experiment());
  fs::create_directory_symlink(victim(), experiment() / "trial");
  EXPECT_THAT(message_of<StorageError>(
                  [&] { base::remove_inside(experiment(), {"trial/checkpoint_000000", "the experiment's store"}); }),
              HasSubstr("a link"));
}

}  // namespace
}  // namespace cadre::storage_tests
