#include "object_storage/json_fields.h"

#include "base/json.h"
#include "storage/storage.h"

namespace cadre::storage {

Value parse_fields(std::string_view text, const std::string& source) {
  try {
    Value parsed = base::parse_json(text, source);
    if (parsed.is_dict()) return parsed;
  } catch (const StorageError&) {
  }
  throw StorageFault(StorageFault::Kind::denied, source + " has no JSON object where one is expected");
}

std::string field(const Value& object, std::string_view name) {
  for (const auto& [key, value] : object.dict()) {
    if (key != name) continue;
    if (value.is_string()) return value.get<std::string>();
    if (value.is_integer()) return std::to_string(value.get<std::int64_t>());
  }
  return {};
}

}  // namespace cadre::storage
