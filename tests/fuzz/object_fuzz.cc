// Text is either no object id or an id that is a plain file name; and a value's references are found in any position.
#include "base/json.h"
#include "fuzz/require.h"
#include "store/object_files.h"
#include "tune/objects.h"

using namespace cadre;
using fuzz::require;

namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

void check_id(const std::string& id) {
  const std::optional<std::size_t> size = store::size_of_object(id);
  if (!size) return;
  require(store::object_id(id.substr(0, 32), *size) == id, "an id has one form");
  require(id.find_first_of("/.") == id.npos, "an id is no path");
  require(store::object_path("/e", id).parent_path() == "/e/objects", "an object lies among the objects");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string text(data, size);
  check_id(text);
  try {
    const Value value = base::parse_json(text, "text");
    const auto uses = control::object_uses(value);
    require(uses.size() <= count(text, "object") + count(text, "\\u"), "nothing else is taken for an object");
    for (const control::ObjectUse& use : uses) check_id(use.id);
  } catch (const StorageError&) {
  }
  return 0;
}
