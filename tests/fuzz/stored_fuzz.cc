// Stored state is either refused or survives a round trip.
#include "cadre/stored.h"

#include "base/json.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

enum class Colour { red, green };

struct Point {
  std::int64_t x = 0;
  double y = 0;
};

// Has a field of each kind that stored.h supports.
struct State {
  bool flag = false;
  int small = 0;
  std::uint64_t bits = 0;
  Colour colour = Colour::red;
  std::string text = {};
  Value value = {};
  Config config = {};
  std::optional<Point> maybe = {};
  std::vector<Point> points = {};
  std::map<std::int64_t, Point> by_number = {};
  std::map<std::string, std::vector<std::optional<std::string>>> by_name = {};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  State state;
  try {
    state = cadre::from_stored<State>(base::parse_json({data, size}, "text"), "text");
  } catch (const Error&) {
    return 0;
  }
  const Value saved = cadre::to_stored(state);
  require(cadre::to_stored(cadre::from_value<State>(saved)) == saved, "state that was saved comes back");
  return 0;
}
