#include "train/notices.h"

#include "base/overload.h"
#include "cadre/stored.h"

namespace cadre::train {
namespace {

constexpr const char* kLacksWorkers = "validator_lacks_workers";

}  // namespace

Value to_value(const Notice& notice) {
  return std::visit(
      base::Overload{[](const FunctionBegins&) { return Value(); },
                     [](const PromiseEnd& end) { return cadre::to_stored(end); },
                     [](const ValidatorLacksWorkers& lacks) { return Value{{kLacksWorkers, lacks.error}}; }},
      notice);
}

Notice to_notice(const Value& content) {
  if (content.is_null()) return FunctionBegins{};
  if (const Value* error = content.is_dict() ? find_entry(content.dict(), kLacksWorkers) : nullptr)
    return ValidatorLacksWorkers{error->get<std::string>()};
  return cadre::from_value<PromiseEnd>(content);
}

}  // namespace cadre::train
