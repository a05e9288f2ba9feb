// A stored dataset, condition or position of a shard is either refused or survives a round trip.
#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "base/json.h"
#include "cadre/data.h"
#include "cadre/error.h"
#include "data/plan.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

constexpr std::int64_t kRows = 100;

// Parses the fuzzer's JSON; empty if it is invalid.
std::optional<Value> parse(const std::string& text) {
  try {
    return base::parse_json(text, "the input");
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_plan(const Value& stored) {
  try {
    const Value again = data::to_value(data::to_plan(stored));
    require(data::to_value(data::to_plan(again)) == again, "a plan that was read is stored as it is");
  } catch (const InvalidArgument&) {
  } catch (const NotFound&) {
  } catch (const EngineError&) {  // rows of an object, and there is no object store
  } catch (const StorageError&) {
  }
}

void check_condition(const Value& stored) {
  try {
    const data::Expression condition = data::Expression::from_value(stored);
    require(data::Expression::from_value(condition.to_value()).to_value() == stored, "a condition is what it was");
    data::range(3).filter(condition).with_options({.function_place = data::FunctionPlace::threads}).count();
  } catch (const InvalidArgument&) {
  }
}

void check_position(const Value& stored, std::int64_t rank, std::int64_t world_size) {
  data::Shard shard = data::range(kRows).shard({.rank = rank, .world_size = world_size});
  try {
    shard.set_position(stored);
  } catch (const InvalidArgument&) {
    return;
  }
  const Value position = shard.position();
  shard.set_position(position);
  require(shard.position() == position, "a position that was taken is one");
  std::int64_t rows = 0;
  for (const data::Batch& batch : shard.iter_batches({.prefetch_batches = 0})) rows += batch.num_rows();
  require(rows <= kRows, "a rank has no more rows than there are");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider input(bytes, size);
  const int kind = input.ConsumeIntegralInRange(0, 2);
  const auto world_size = input.ConsumeIntegralInRange<std::int64_t>(1, 4);
  const auto rank = input.ConsumeIntegralInRange<std::int64_t>(0, world_size - 1);
  const std::optional<Value> stored = parse(input.ConsumeRemainingBytesAsString());
  if (!stored) return 0;
  if (kind == 0) check_plan(*stored);
  if (kind == 1) check_condition(*stored);
  if (kind == 2) check_position(*stored, rank, world_size);
  return 0;
}
