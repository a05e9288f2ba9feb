// Stored state is either refused or survives a round trip.
#include "base/archive.h"

#include "base/json.h"
#include "fuzz/require.h"

using namespace cadre;
using base::LoadArchive;
using base::SaveArchive;
using fuzz::require;

namespace {

enum class Colour { red, green };

struct Point {
  std::int64_t x = 0;
  double y = 0;

  static void fields(auto& archive, auto& point) {
    archive("x", point.x);
    archive("y", point.y);
  }
};

// Has a field of each kind that an archive supports.
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
  base::RandomStream stream{1, 2, base::Purpose::exploit};

  static void fields(auto& archive, auto& state) {
    archive("flag", state.flag);
    archive("small", state.small);
    archive("bits", state.bits);
    archive("colour", state.colour);
    archive("text", state.text);
    archive("value", state.value);
    archive("config", state.config);
    archive("maybe", state.maybe);
    archive("points", state.points);
    archive("by_number", state.by_number);
    archive("by_name", state.by_name);
    archive("stream", state.stream);
  }
};

State loaded(const Value& value) {
  State state;
  LoadArchive::load(value, state);
  return state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  State state;
  try {
    state = loaded(base::parse_json({data, size}, "text"));
  } catch (const Error&) {
    return 0;
  }
  const Value saved = SaveArchive::to_value(state);
  require(SaveArchive::to_value(loaded(saved)) == saved, "state that was saved comes back");
  return 0;
}
