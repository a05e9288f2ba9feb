#include "tune/plot/logarithmic_parameter.h"

namespace cadre::tune {

bool is_drawn_logarithmically(const Value& space, std::string_view path) {
  const std::size_t slash = path.find('/');
  const Value* entry = space.is_dict() ? find_entry(space.dict(), path.substr(0, slash)) : nullptr;
  if (entry == nullptr || !entry->is_dict()) return false;
  const Dict& fields = entry->dict();
  const Value* type = find_entry(fields, "type");
  if (slash == path.npos) return type != nullptr && (*type == Value("loguniform") || *type == Value("lograndint"));
  const Value* nested = find_entry(fields, "entries");
  return nested != nullptr && is_drawn_logarithmically(*nested, path.substr(slash + 1));
}

}  // namespace cadre::tune
