// CSV and JSON files of any bytes are read or refused; the number of rows read equals the count, whichever columns are
// selected.
#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "cadre/data.h"
#include "cadre/error.h"
#include "fuzz/require.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;

namespace {

void check(const data::Dataset& rows) {
  try {
    const auto all = rows.take_all();
    require(rows.count() == std::ssize(all), "as many rows are read as are counted");
    require(std::ssize(rows.select_columns({}).take_all()) == std::ssize(all), "rows do not need their columns");
    for (const data::Row& row : all) require(row.dict().size() == rows.columns().size(), "a row has every column");
  } catch (const InvalidArgument&) {
  } catch (const StorageError&) {
  } catch (const NotFound&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  FuzzedDataProvider input(bytes, size);
  const bool is_csv = input.ConsumeBool();
  const auto mismatch = input.ConsumeBool() ? data::SchemaMismatch::unify : data::SchemaMismatch::refuse;
  const std::string ending = is_csv ? ".csv" : ".json";
  const std::string first = directory / ("1" + ending);
  const std::string second = directory / ("2" + ending);
  test_support::write_bytes(first, input.ConsumeRandomLengthString());
  test_support::write_bytes(second, input.ConsumeRemainingBytesAsString());
  const data::ExecutionOptions options{.num_threads = 1, .function_place = data::FunctionPlace::threads};
  try {
    const data::Dataset rows = is_csv ? data::read_csv({first, second}, {.schema_mismatch = mismatch})
                                      : data::read_json({first, second}, {.schema_mismatch = mismatch});
    check(rows.with_options(options));
  } catch (const InvalidArgument&) {
  }
  return 0;
}
