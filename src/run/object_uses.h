// The objects that the options of an experiment or a training run refer to, and their files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cadre/object.h"

namespace cadre::run {

// A reference to an object, and where it stands: "param_space/images/value".
struct ObjectUse {
  std::string place;
  std::string id;
  bool operator==(const ObjectUse&) const = default;
};

// All of them in a value, in order; places begin with `place`.
std::vector<ObjectUse> object_uses(const Value& value, const std::string& place = "");

// Handles of the objects that this process holds among those.
std::vector<ObjectRef> held_objects(std::span<const ObjectUse> uses);

// Makes them files of the experiment.
void write_objects(const std::filesystem::path& directory, std::span<const ObjectRef> objects);
// Makes those of `source` that this process does not hold files of a run that begins, and which a worker of that
// experiment starts. Throws StorageError that names the use of one that is not there.
void share_objects(const std::filesystem::path& source, const std::filesystem::path& directory,
                   std::span<const ObjectUse> uses);
// Whether an experiment that is continued has the files of all objects; those that are not there, and that this process
// holds, are written again. `contents`: not only their sizes are compared. Throws StorageError that names every use of
// those that are gone or damaged.
void require_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses, bool contents);
// Deletes the files of all others, and what a process that was killed has left; those of objects that this process
// holds go with their last handle.
void delete_other_objects(const std::filesystem::path& directory, std::span<const ObjectUse> uses);

}  // namespace cadre::run
