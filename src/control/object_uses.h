// The objects that the options of an experiment or a training run refer to, and their files; and the checkpoints that
// they refer to.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cadre/object.h"

namespace cadre::control {

// A reference to an object, and its place in the options: "param_space/images/value".
struct ObjectUse {
  std::string place;
  std::string id;
  bool operator==(const ObjectUse&) const = default;
};

// Returns all references to objects in a value, in order; places begin with `place`.
std::vector<ObjectUse> object_uses(const Value& value, const std::string& place = "");

// Returns handles to the used objects that this process holds.
std::vector<ObjectRef> held_objects(std::span<const ObjectUse> uses);

// Writes the objects as files of the experiment.
void write_objects(const std::filesystem::path& directory, std::span<const ObjectRef> objects);
// Links or copies objects of the experiment `source` that this process does not hold into a new run that a worker of
// that experiment starts. Throws StorageError, naming the use, if one is missing.
void share_objects(const std::filesystem::path& source, const std::filesystem::path& directory,
                   std::span<const ObjectUse> uses);
// Checks that an experiment that is continued has the files of all objects; writes missing ones again if this process
// holds them. `contents`: compare the contents, not only the sizes. Throws StorageError, naming every use of an object
// that is missing or damaged.
void require_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses, bool contents);
// Deletes the files of all other objects, and files left by a killed process; files of objects that this process holds
// are deleted with their last handle.
void delete_other_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses);

// A reference to a checkpoint that cannot be read: its place in the options, as above, and what is wrong.
struct MissingCheckpoint {
  std::string place;
  std::string fault;
};

// Returns all of them in a value, in order. Those in an object storage count as there.
std::vector<MissingCheckpoint> missing_checkpoints(const Value& value);

}  // namespace cadre::control
