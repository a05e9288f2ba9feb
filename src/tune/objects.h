// The objects that an experiment's options and trials refer to: which they are, who can still use them, and their
// files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cadre/object.h"
#include "tune/options/faults.h"
#include "tune/trial.h"

namespace cadre::tune {

// A reference to an object, and where it stands: "param_space/images/value".
struct ObjectUse {
  std::string place;
  std::string id;
  bool operator==(const ObjectUse&) const = default;
};

// All of them in a value, in order; places begin with `place`.
std::vector<ObjectUse> object_uses(const Value& value, const std::string& place = "");

// What trials can still use: as long as one is to come, has not ended, or has failed and may be taken up again,
// everything in the experiment's description (description.h) and in the configs of those trials. Otherwise nothing.
std::vector<ObjectUse> objects_in_use(const Dict& description, std::span<const Trial> trials,
                                      std::int64_t trials_to_come);

// Adds what is wrong with references of a new experiment: to what is no object, or to one that nobody holds.
void check_objects(const Dict& description, Faults& faults);
// Handles of the objects that this process holds among those.
std::vector<ObjectRef> held_objects(std::span<const ObjectUse> uses);

// Makes them files of the experiment.
void write_objects(const std::filesystem::path& directory, std::span<const ObjectRef> objects);
// Whether an experiment that is continued has the files of all objects; those that are not there, and that this process
// holds, are written again. `contents`: not only their sizes are compared. Throws StorageError that names every use of
// those that are gone or damaged.
void require_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses, bool contents);
// Deletes the files of all others, and what a process that was killed has left; those of objects that this process
// holds go with their last handle.
void delete_other_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses);

}  // namespace cadre::tune
