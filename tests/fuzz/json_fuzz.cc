// Text is either refused or a value that survives a round trip.
#include <algorithm>
#include <string>

#include "base/json.h"
#include "fuzz/require.h"

using cadre::base::parse_json;
using cadre::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  cadre::Value value;
  try {
    value = parse_json(text, "text");
  } catch (const cadre::StorageError&) {
    return 0;
  }
  const std::string written = to_json(value);
  require(std::ranges::all_of(written, [](char c) { return c >= ' ' && c <= '~'; }), "JSON is printable ASCII");
  const cadre::Value again = parse_json(written, "what was written");
  require(to_json(again) == written, "what was read from JSON is written as the same JSON");
  require(again == value, "a value comes back from JSON as itself");
  if (value.is_dict()) {
    const std::string pretty = cadre::base::to_pretty_json(value.dict());
    const cadre::Value of_pretty = parse_json(pretty, "the pretty form");
    require(of_pretty.is_dict() || again == of_pretty, "the pretty form is the same kind of value");
    if (of_pretty.is_dict())
      require(cadre::base::to_pretty_json(of_pretty.dict()) == pretty, "the pretty form comes back as itself");
  }
  return 0;
}
