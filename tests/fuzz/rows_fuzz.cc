// Rows of any content with correct checksums are read in order without a gap, or refused.
#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "cadre/error.h"
#include "fuzz/fuzzed_value.h"
#include "fuzz/require.h"
#include "store/experiment_store.h"
#include "store/read_store.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;

namespace {

// Returns mostly small numbers, so that rows refer to each other.
std::int64_t number_from(FuzzedDataProvider& input) {
  return input.ConsumeBool() ? input.ConsumeIntegralInRange<std::int64_t>(-1, 6)
                             : input.ConsumeIntegral<std::int64_t>();
}

template <class Row>
void write(const store::Database& database, const Row& row) {
  store::RowWriter<Row>(database, store::WriteMode::replace).write(row);
}

void write_row(const store::Database& database, FuzzedDataProvider& input) {
  const auto number = [&] { return number_from(input); };
  const auto text = [&] { return fuzz::text_from(input); };
  switch (input.ConsumeIntegralInRange(0, 4)) {
    case 0:
      return write(database, store::ResultRow{number(), fuzz::double_from(input), number(), number(), number(),
                                              input.ConsumeBool(), text(), text()});
    case 1:
      return write(database, store::EventRow{number(), fuzz::double_from(input), text(), number(), number(), text()});
    case 2:
      return write(database, store::DecisionRow{number(), text(), number(), text(), number()});
    case 3:
      return write(database, store::TrialRow{number(), text(), text(), number(), text(), text(), text(), text()});
    default:
      return write(database,
                   store::CheckpointRow{number(), number(), number(), text(), text(), input.ConsumeBool(), text()});
  }
}

void read_rows(const store::Database& database, std::int64_t after) {
  std::int64_t last = after;
  const auto next = [&](const auto& row) { require(row.sequence == ++last, "rows come in order without a gap"); };
  const auto decision = [&](const store::DecisionRow& row) {
    require(row.cause == last, "decisions follow their cause");
  };
  try {
    store::visit_rows(database, {next, next, decision}, after);
    store::read_trials(database);
    store::read_checkpoints(database);
  } catch (const StorageError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  static const bool made = (store::ExperimentStore::create(directory.path(), {"name", "trainable", "{}"}), true);
  static const auto database = store::open_database(directory.path());
  require(made, "there is a store");

  FuzzedDataProvider input(data, size);
  const std::int64_t after = input.ConsumeIntegralInRange<std::int64_t>(0, 3);
  database->execute("BEGIN");
  while (input.remaining_bytes() > 0) write_row(*database, input);
  read_rows(*database, after);
  database->roll_back();
  return 0;
}
