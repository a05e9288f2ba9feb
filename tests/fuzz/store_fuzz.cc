// A store that was cut or has changed bytes is either refused, with its file named, or read as it was at some commit.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "cadre/error.h"
#include "fuzz/require.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "support/store_content.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;
using test_support::content_of;
using test_support::content_of_store;
using test_support::TemporaryDirectory;
using test_support::write_bytes;

namespace {

constexpr int kTransactions = 8;

void add_transaction(store::ExperimentStore& store, int i) {
  const std::int64_t cause =
      store.add(store::ResultRow{.time = 1e9 + i, .trial = i % 3, .step = i, .metrics = R"({"loss": 0.25})"});
  store.add(store::DecisionRow{.cause = cause, .kind = "exploit", .trial = i % 3, .data = R"({"donor": 1})"});
  store.add(store::EventRow{.time = 1e9, .kind = "worker_ended", .trial = i % 3, .data = std::string(10 * i, 'x')});
  store.put(store::TrialRow{.trial = i % 3, .trial_id = "00001", .status = "RUNNING", .attempt = i, .config = "{}"});
  store.add(store::CheckpointRow{.id = i, .trial = i % 3, .step = i, .directory = "checkpoint"});
  if (i % 4 == 3) store.put_snapshot(cause, std::string(300, 's'));
}

// A store's files, and its contents at each commit.
struct Files {
  std::string database = {};
  std::string log = {};
  std::vector<std::string> states = {};
};

// Returns the files after a kill: everything since the creation is in the log.
Files files_after_kill() {
  const TemporaryDirectory directory;
  store::ExperimentStore store = store::ExperimentStore::create(directory.path(), {"name", "trainable", "{}"});
  Files files{.states = {content_of_store(store)}};
  for (int i = 0; i < kTransactions; ++i) {
    add_transaction(store, i);
    store.commit();
    files.states.push_back(content_of_store(store));
  }
  files.database = content_of(directory / store::kStoreFileName);
  files.log = content_of(directory / "experiment.db-wal");
  return files;
}

// Returns the files after a clean end: everything is in the database.
Files files_after_close(const Files& killed) {
  const TemporaryDirectory directory;
  write_bytes(directory / store::kStoreFileName, killed.database);
  write_bytes(directory / "experiment.db-wal", killed.log);
  store::ExperimentStore::open(directory.path());
  return {.database = content_of(directory / store::kStoreFileName), .states = {killed.states.back()}};
}

void damage(std::string& bytes, FuzzedDataProvider& input) {
  if (bytes.empty()) return;
  const auto at = input.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
  switch (input.ConsumeIntegralInRange(0, 3)) {
    case 0:
      bytes.resize(at);
      return;
    case 1: {  // copies a part elsewhere, as a disk that confuses its blocks does
      const auto from = input.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
      const std::string part = bytes.substr(from, input.ConsumeIntegral<std::uint16_t>());
      bytes.replace(at, part.size(), part);
      return;
    }
    default: {
      const std::string written = input.ConsumeRandomLengthString(16);
      bytes.replace(at, std::min(written.size(), bytes.size() - at), written);
    }
  }
}

void look_at(const std::filesystem::path& directory) {
  try {
    const store::ExperimentReader reader(directory, store::ExperimentReader::Check::whole);
    reader.visit({[](const auto&) {}, [](const auto&) {}, [](const auto&) {}});
    reader.trials();
    reader.checkpoints();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Files killed = files_after_kill();
  static const Files closed = files_after_close(killed);
  static const TemporaryDirectory directory;

  FuzzedDataProvider input(data, size);
  Files files = input.ConsumeBool() ? killed : closed;
  for (int changes = input.ConsumeIntegralInRange(1, 4); changes > 0; --changes)
    damage(input.ConsumeBool() && !files.log.empty() ? files.log : files.database, input);
  std::filesystem::remove(directory / "experiment.db-shm");
  std::filesystem::remove(directory / "experiment.db-wal");
  write_bytes(directory / store::kStoreFileName, files.database);
  if (!files.log.empty()) write_bytes(directory / "experiment.db-wal", files.log);

  look_at(directory.path());
  std::string content;
  try {
    content = content_of_store(store::ExperimentStore::open(directory.path()));
  } catch (const Error& error) {
    require(std::string_view(error.what()).find((directory / store::kStoreFileName).string()) != std::string::npos,
            "a store that is refused is named");
    return 0;
  }
  require(std::ranges::find(files.states, content) != files.states.end(), "a store is read as it was at some commit");
  return 0;
}
