// A policy file is either refused with its lines or a schedule that survives a round trip.
#include "base/json.h"
#include "fuzz/require.h"
#include "tune/schedulers/policy_file.h"

using namespace cadre;
using fuzz::require;

namespace {

// Returns the schedule as a policy file, in which every trial is its own donor.
std::string file_of(const tune::PolicySchedule& schedule) {
  std::string text;
  Config donor = schedule.initial_config;
  for (const auto& [change_at, config] : schedule.changes) {
    text += to_json(list("0", "0", 0, change_at, donor.dict(), config.dict())) + "\n";
    donor = config;
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  tune::PolicySchedule schedule;
  try {
    schedule = tune::parse_policy({data, size}, "file");
  } catch (const InvalidArgument&) {
    return 0;
  }
  const std::string text = file_of(schedule);
  require(file_of(tune::parse_policy(text, "what was written")) == text, "a schedule comes back from its file");
  Config config = schedule.initial_config;
  for (const auto& change : schedule.changes) {
    config = tune::changed_config(config, schedule, change);
    for (const auto& [key, value] : change.config)
      require(config.at(key) == value, "a trial gets each value of its change");
  }
  return 0;
}
