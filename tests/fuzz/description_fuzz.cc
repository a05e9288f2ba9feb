// A stored description is either refused or survives a round trip.
#include "tune/description.h"

#include "base/json.h"
#include "control/differences.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

Dict described(const Value& stored) {
  const tune::Description description = tune::parse_description(stored, "store");
  return tune::describe(description.trainable, description.options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  Value stored;
  Dict first;
  try {
    stored = base::parse_json({data, size}, "text");
    first = described(stored);
  } catch (const StorageError&) {
    return 0;
  }
  require(described(first) == first, "what was described is described again as itself");
  require(control::differences(first, first).empty(), "a description does not differ from itself");
  control::differences(stored.dict(), first);
  return 0;
}
