#include "loggers/flat_row.h"

#include <string>

namespace cadre::loggers {
namespace {

void flatten_into(Dict& flat, const std::string& prefix, const Dict& entries) {
  flat.reserve(flat.size() + entries.size());
  for (const auto& [key, value] : entries) {
    if (!value.is_dict()) flat.emplace_back(prefix + key, value);
  }
  for (const auto& [key, value] : entries) {
    if (value.is_dict()) flatten_into(flat, prefix + key + "/", value.dict());
  }
}

}  // namespace

Dict flatten(const Dict& entries) {
  Dict flat;
  flatten_into(flat, "", entries);
  return flat;
}

}  // namespace cadre::loggers
