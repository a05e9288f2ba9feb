#include "tune/objects.h"

#include <algorithm>

#include "store/held_objects.h"
#include "store/object_files.h"

namespace cadre::tune {
namespace {

// Returns true for a value that trials get; others are functions, which an extension needs.
bool is_data(const control::ObjectUse& use) {
  return use.place.starts_with("param_space/") || use.place.starts_with("trainable/parameters/");
}

}  // namespace

std::vector<control::ObjectUse> objects_in_use(const Dict& description, std::span<const Trial> trials,
                                               std::int64_t trials_to_come) {
  const auto is_over = [](const Trial& trial) { return trial.ended() && trial.status != TrialStatus::error; };
  std::vector<control::ObjectUse> uses = control::object_uses(description);
  if (trials_to_come == 0 && std::ranges::all_of(trials, is_over)) {
    std::erase_if(uses, [](const control::ObjectUse& use) { return is_data(use); });
    return uses;
  }
  for (const Trial& trial : trials) {
    if (!is_over(trial)) {
      const auto of_trial = control::object_uses(trial.config.value(), "the config of trial " + trial.id);
      uses.insert(uses.end(), of_trial.begin(), of_trial.end());
    }
  }
  return uses;
}

void check_objects(const Dict& description, Faults& faults) {
  for (const auto& [place, id] : control::object_uses(description)) {
    if (!store::size_of_object(id)) {
      faults.add(place, "\"" + id + "\" names no object; cadre::put makes one");
    } else if (!store::find_held_object(id)) {
      faults.add(place, "the object " + id +
                            " is gone: no ObjectRef names it any more. Keep what cadre::put returned until the Tuner "
                            "is made");
    }
  }
  for (const auto& [place, fault] : control::missing_checkpoints(description)) faults.add(place, fault);
}

}  // namespace cadre::tune
