#include "tune/trial.h"

#include "tune/result_keys.h"

namespace cadre::tune {

std::int64_t training_iteration(const Metrics& result) {
  const Value* value = result.find(result_key::training_iteration);
  return value != nullptr && value->is_integer() ? value->get<std::int64_t>() : 0;
}

}  // namespace cadre::tune
