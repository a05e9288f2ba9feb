#include "loggers/flat_row.h"

#include <string>

namespace cadre::loggers {
namespace {

void flatten_into(Dict& flat, const std::string& prefix, const Dict& entries) {
  Dict nested;
  for (const auto& [key, value] : entries) {
    if (value.is_dict()) {
      nested.emplace_back(prefix + key, value);
    } else {
      flat.emplace_back(prefix + key, value);
    }
  }
  for (const auto& [path, value] : nested) flatten_into(flat, path + "/", value.dict());
}

}  // namespace

Dict flatten(const Dict& entries) {
  Dict flat;
  flatten_into(flat, "", entries);
  return flat;
}

}  // namespace cadre::loggers
