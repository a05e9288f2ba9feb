#include "tune/plot/logarithmic_parameter.h"

#include <string>

namespace cadre::tune {

bool is_drawn_logarithmically(const Value& space, std::string_view path) {
  const std::size_t slash = path.find('/');
  const Value* entry = space.is_dict() ? Config(space.dict()).find(path.substr(0, slash)) : nullptr;
  if (entry == nullptr || !entry->is_dict()) return false;
  const Config fields(entry->dict());
  const std::string type = fields.get<std::string>("type", "");
  if (slash == path.npos) return type == "loguniform" || type == "lograndint";
  const Value* nested = fields.find("entries");
  return nested != nullptr && is_drawn_logarithmically(*nested, path.substr(slash + 1));
}

}  // namespace cadre::tune
