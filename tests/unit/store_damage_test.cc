// A truncated store, or one with flipped bits, is either refused with its path or read as it was at some commit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "support/message_of.h"
#include "support/store_content.h"
#include "support/stored_results.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::content_of_store;
using cadre::test_support::message_of;
using cadre::test_support::results_of;
using cadre::test_support::TemporaryDirectory;
using cadre::test_support::write_bytes;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kTransactions = 24;

void add_transaction(ExperimentStore& store, int i) {
  const std::int64_t cause = store.add(ResultRow{.time = 1e9 + i,
                                                 .trial = i % 3,
                                                 .attempt = 1,
                                                 .step = i,
                                                 .repeated = i % 7 == 0,
                                                 .metrics = fmt::format(R"({{"loss": {}}})", 1.0 / (i + 1)),
                                                 .checkpoint = "checkpoint"});
  store.add(DecisionRow{.cause = cause, .kind = "exploit", .trial = i % 3, .data = R"({"donor": 1})"});
  store.add(EventRow{.time = 1e9, .kind = "worker_ended", .trial = i % 3, .data = std::string(10 * i, 'x')});
  store.put(TrialRow{.trial = i % 3, .trial_id = "00001", .status = "RUNNING", .attempt = i, .config = "{}"});
  store.add(CheckpointRow{.id = i, .trial = i % 3, .step = i, .directory = "00001/checkpoint_000000"});
  if (i % 4 == 2) store.remove_checkpoint(i - 1);
  if (i % 4 == 3) store.set_checkpoint_synced(i, R"({"checkpoint.pt": 12})");
  if (i % 5 == 4) store.put_snapshot(cause, std::string(300 * i, 's'));  // more than a page
}

// The files of a store, and its content at each commit.
struct Files {
  std::string database = {};
  std::string log = {};
  std::vector<std::string> states = {};

  void write_to(const TemporaryDirectory& directory) const {
    std::filesystem::remove(directory / "experiment.db-shm");
    write_bytes(directory / "experiment.db", database);
    write_bytes(directory / "experiment.db-wal", log);
    if (log.empty()) std::filesystem::remove(directory / "experiment.db-wal");
  }
  bool are_in(const TemporaryDirectory& directory) const {
    return content_of(directory / "experiment.db") == database && content_of(directory / "experiment.db-wal") == log;
  }
};

// Returns a store's files after a kill: everything since its creation is in the log. `boot`: the boot that the store
// names, the current one or an earlier one.
Files files_after_kill(const std::string& boot = base::boot_id()) {
  const TemporaryDirectory directory;
  ExperimentStore store = ExperimentStore::create(directory.path(), {"name", "trainable", R"({"seed": 1})"});
  RowWriter<MetaRow>(Database(directory / "experiment.db", Database::Access::read_write), WriteMode::replace)
      .write({"boot", boot});
  Files files{.states = {content_of_store(store)}};
  for (int i = 0; i < kTransactions; ++i) {
    add_transaction(store, i);
    store.commit();
    files.states.push_back(content_of_store(store));
  }
  files.database = content_of(directory / "experiment.db");
  files.log = content_of(directory / "experiment.db-wal");
  return files;
}

// Returns a store's files after a clean exit: everything is in the database.
Files files_after_close() {
  const Files killed = files_after_kill();
  const TemporaryDirectory directory;
  killed.write_to(directory);
  ExperimentStore::open(directory.path());
  return {.database = content_of(directory / "experiment.db"), .states = {killed.states.back()}};
}

// Returns the files as they are after a reboot of the machine.
Files in_another_boot(Files files) {
  const TemporaryDirectory directory;
  write_bytes(directory / "experiment.db", files.database);
  RowWriter<MetaRow>(Database(directory / "experiment.db", Database::Access::read_write), WriteMode::replace)
      .write({"boot", "another"});
  files.database = content_of(directory / "experiment.db");
  return files;
}

enum class Outcome { refused, last_state, earlier_state };

// Opens damaged files and reads everything.
Outcome outcome_of(const Files& damaged) {
  static const TemporaryDirectory directory;
  damaged.write_to(directory);
  std::string content;
  try {
    content = content_of_store(ExperimentStore::open(directory.path()));
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr((directory / "experiment.db").string()));
    return Outcome::refused;
  }
  EXPECT_THAT(damaged.states, Contains(content));
  return content == damaged.states.back() ? Outcome::last_state : Outcome::earlier_state;
}

std::string where(std::size_t offset, const char* file) { return fmt::format("at byte {} of the {}", offset, file); }

// Returns all lengths near the borders of the parts at the file's two ends, and fewer in between.
std::vector<std::size_t> lengths(std::size_t size, std::size_t start, std::size_t part) {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length < size; ++length) {
    const std::size_t in_part = length < start ? 0 : (length - start) % part;
    const bool is_dense = length < start + 3 * part || length + 3 * part > size;
    if ((in_part < 26 && is_dense) || in_part < 2 || in_part == part - 1 || length % 1009 == 0)
      lengths.push_back(length);
  }
  return lengths;
}

void flip_bit(std::string& bytes, std::mt19937& random) {
  bytes[random() % bytes.size()] ^= static_cast<char>(1U << random() % 8);
}

TEST(StoreDamage, ADatabaseThatWasCutIsRefused) {
  const Files whole = files_after_close();
  for (const std::size_t length : lengths(whole.database.size(), 0, 4096)) {
    SCOPED_TRACE(where(length, "database"));
    Files cut = whole;
    cut.database.resize(length);
    ASSERT_EQ(outcome_of(cut), Outcome::refused);
  }
  EXPECT_EQ(outcome_of(whole), Outcome::last_state);
}

TEST(StoreDamage, ALogThatWasCutGoesBackToTheLastWholeTransaction) {
  const Files whole = files_after_kill();
  std::size_t last = 0;
  for (const std::size_t length : lengths(whole.log.size(), 32, 4096 + 24)) {
    SCOPED_TRACE(where(length, "log"));
    Files cut = whole;
    cut.log.resize(length);
    ASSERT_EQ(outcome_of(cut), Outcome::earlier_state);
    last = length;
  }
  EXPECT_EQ(last, whole.log.size() - 1);
  EXPECT_EQ(outcome_of(whole), Outcome::last_state);
}

TEST(StoreDamage, ADatabaseThatWasCutBesideItsLogIsRefusedUnlessTheLogHoldsTheRest) {
  const Files whole = files_after_kill();
  for (const std::size_t length : lengths(whole.database.size(), 0, 4096)) {
    SCOPED_TRACE(where(length, "database"));
    Files cut = whole;
    cut.database.resize(length);
    ASSERT_NE(outcome_of(cut), Outcome::earlier_state);
  }
}

TEST(StoreDamage, AFlippedBitOfTheDatabaseIsNoticedOrChangesNothing) {
  const Files whole = files_after_close();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3'500; ++i) {
    Files flipped = whole;
    flip_bit(flipped.database, random);
    const Outcome outcome = outcome_of(flipped);
    ASSERT_NE(outcome, Outcome::earlier_state);
    refused += outcome == Outcome::refused;
  }
  EXPECT_GT(refused, 350);
}

TEST(StoreDamage, AFlippedBitOfTheLogIsNoticedUnlessItIsInTheLastTransaction) {
  const Files whole = files_after_kill();
  std::mt19937 random(2);
  int earlier = 0;
  for (int i = 0; i < 1'200; ++i) {
    Files flipped = whole;
    flip_bit(flipped.log, random);
    const Outcome outcome = outcome_of(flipped);
    ASSERT_NE(outcome, Outcome::last_state);
    earlier += outcome == Outcome::earlier_state;
  }
  EXPECT_LT(earlier, 120);
}

TEST(StoreDamage, WhatIsRefusedIsLeftAsItWas) {
  Files files = files_after_kill();
  files.log[files.log.size() / 2] ^= 1;
  const TemporaryDirectory directory;
  files.write_to(directory);
  EXPECT_THROW(ExperimentStore::open(directory.path()), StorageError);
  EXPECT_TRUE(files.are_in(directory));
  EXPECT_THROW(ExperimentReader(directory.path(), ExperimentReader::Check::whole), StorageError);
  EXPECT_TRUE(files.are_in(directory));
}

TEST(StoreDamage, AFileThatWasCutIsNamedWithItsEnd) {
  Files files = files_after_close();
  files.database.resize(files.database.size() - 100);
  const TemporaryDirectory directory;
  files.write_to(directory);
  EXPECT_THAT(message_of<StorageError>([&] { ExperimentStore::open(directory.path()); }),
              HasSubstr(fmt::format("experiment.db is damaged near byte {}: the file ends", files.database.size())));
}

TEST(StoreDamage, DamageInTheMiddleOfTheLogIsNamedWithItsOffset) {
  Files files = files_after_kill();
  constexpr std::size_t frame = 4096 + 24;
  files.log[32 + 10 * frame + 1'000] ^= 1;
  const TemporaryDirectory directory;
  files.write_to(directory);
  EXPECT_THAT(message_of<StorageError>([&] { ExperimentStore::open(directory.path()); }),
              AllOf(HasSubstr("experiment.db-wal is damaged near byte " + std::to_string(32 + 10 * frame)),
                    HasSubstr("Restore the file from a backup")));
}

TEST(StoreDamage, AfterAnotherBootAGapInTheLogIsWhatALossOfPowerLeft) {
  const Files whole = in_another_boot(files_after_kill("another"));
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    Files flipped = whole;
    flip_bit(flipped.log, random);
    ASSERT_EQ(outcome_of(flipped), Outcome::earlier_state);
  }
  Files files = whole;
  files.log[files.log.size() / 2] ^= 1;
  const TemporaryDirectory directory;
  files.write_to(directory);
  std::string recovered;
  {
    ExperimentStore store = ExperimentStore::open(directory.path());
    EXPECT_THAT(store.recovered(), AllOf(HasSubstr("experiment.db-wal"), HasSubstr("loss of power")));
    recovered = content_of_store(store);
    EXPECT_THAT(whole.states, Contains(recovered));
  }
  const ExperimentStore again = ExperimentStore::open(directory.path());
  EXPECT_THAT(again.recovered(), IsEmpty());
  EXPECT_EQ(content_of_store(again), recovered);
}

TEST(StoreDamage, TheBootThatOpensAStoreAnswersForItsLog) {
  Files files = in_another_boot(files_after_close());
  const TemporaryDirectory directory;
  files.write_to(directory);
  ExperimentStore store = ExperimentStore::open(directory.path());
  for (int i = 0; i < 3; ++i) {
    add_transaction(store, kTransactions + i);
    store.commit();
  }
  files.database = content_of(directory / "experiment.db");
  files.log = content_of(directory / "experiment.db-wal");
  files.log[40] ^= 1;
  EXPECT_EQ(outcome_of(files), Outcome::refused);
}

TEST(StoreDamage, AChangedValueIsNamedWithItsTableRowAndOffset) {
  Files files = files_after_close();
  const std::size_t at = files.database.find(R"("loss": 0.25)");
  ASSERT_NE(at, std::string::npos);
  files.database[at + 9] ^= 1;
  const TemporaryDirectory directory;
  files.write_to(directory);
  const ExperimentStore store = ExperimentStore::open(directory.path());
  const std::string message = message_of<StorageError>([&] { content_of_store(store); });
  EXPECT_THAT(message, AllOf(HasSubstr((directory / "experiment.db").string() + " is damaged near byte"),
                             HasSubstr("row 7 of"), HasSubstr("results")));
  const auto offset = std::stoul(message.substr(message.find("near byte ") + 10));
  EXPECT_GT(offset, at);
  EXPECT_LT(offset, at + 100);
}

TEST(StoreDamage, TheChecksumOfARowIsMadeAsTheFormatSays) {
  RowChecksum checksum;
  checksum.begin("table");
  checksum.add(std::int64_t{-5});
  checksum.add(0.25);
  checksum.add(std::string_view("text"));
  EXPECT_EQ(checksum.value(), 5574756894075138254);  // by another program, of the bytes in docs/formats.md
}

TEST(StoreDamage, RowsThatAreGoneAreMissed) {
  for (const char* loss : {"DELETE FROM results WHERE sequence = 7", "DELETE FROM events WHERE sequence = 8",
                           "DELETE FROM decisions WHERE id = 3", "DELETE FROM meta WHERE key = 'options'",
                           "DELETE FROM events WHERE sequence = 48; DELETE FROM results WHERE sequence = 47",
                           "UPDATE decisions SET id = 9223372036854775807 WHERE id = 3"}) {
    const Files files = files_after_close();
    const TemporaryDirectory directory;
    files.write_to(directory);
    Database(directory / "experiment.db", Database::Access::read_write).execute(loss);
    EXPECT_THROW(content_of_store(ExperimentStore::open(directory.path())), StorageError) << loss;
  }
}

TEST(StoreDamage, TheHistoryOfATrialIsReadWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  Files files = files_after_close();
  files.write_to(directory);
  {
    ExperimentStore store = ExperimentStore::open(directory.path());
    store.finish();
  }
  files.database = content_of(directory / "experiment.db");
  const auto history = results_of(directory.path(), 1);
  std::mt19937 random(4);
  int refused = 0;
  for (int i = 0; i < 1'000; ++i) {
    Files flipped = files;
    flip_bit(flipped.database, random);
    flipped.write_to(directory);
    try {
      ASSERT_EQ(results_of(directory.path(), 1), history);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr((directory / "experiment.db").string()));
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace cadre::store
