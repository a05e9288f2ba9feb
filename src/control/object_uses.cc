#include "control/object_uses.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/directory.h"
#include "base/inner_path.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"
#include "store/checkpoint_access.h"
#include "store/held_objects.h"
#include "store/object_files.h"

namespace cadre::control {
namespace fs = std::filesystem;
namespace {

std::string join(const std::string& place, const std::string& key) { return place.empty() ? key : place + "/" + key; }

// Adds the references of a kind in a value.
void add_uses(const Value& value, std::string_view kind, const std::string& place, std::vector<ObjectUse>& uses) {
  if (const auto* reference = std::get_if<Reference>(&value.data())) {
    if (reference->kind == kind) uses.push_back({place, reference->id});
  } else if (value.is_list()) {
    for (std::size_t i = 0; i < value.items().size(); ++i)
      add_uses(value.items()[i], kind, join(place, fmt::to_string(i)), uses);
  } else if (value.is_dict()) {
    for (const auto& [key, entry] : value.dict()) add_uses(entry, kind, join(place, key), uses);
  }
}

// Returns why a checkpoint cannot be read; empty if it can.
std::string fault_of_checkpoint(const fs::path& directory) {
  try {
    const fs::path files = storage::directory_with_files(directory);
    std::error_code unusable;
    if (files.empty() || fs::is_directory(files, unusable)) return "";
    return "there is no checkpoint " + files.string() +
           (fs::exists(files, unusable) ? ": it is no directory" : ": no such directory");
  } catch (const StorageError& error) {
    return error.what();
  }
}

std::set<std::string> ids_of(std::span<const ObjectUse> uses) {
  std::set<std::string> ids;
  for (const ObjectUse& use : uses) ids.insert(use.id);
  return ids;
}

}  // namespace

std::vector<ObjectUse> object_uses(const Value& value, const std::string& place) {
  std::vector<ObjectUse> uses;
  add_uses(value, store::kObjectKind, place, uses);
  return uses;
}

std::vector<ObjectRef> held_objects(std::span<const ObjectUse> uses) {
  std::vector<ObjectRef> objects;
  for (const std::string& id : ids_of(uses)) {
    if (auto object = store::find_held_object(id)) objects.push_back(*std::move(object));
  }
  return objects;
}

void write_objects(const fs::path& directory, std::span<const ObjectRef> objects) {
  for (const ObjectRef& object : objects) ObjectAccess::held(object).write_into(directory);
}

void share_objects(const fs::path& source, const fs::path& directory, std::span<const ObjectUse> uses) {
  for (const ObjectUse& use : uses) {
    if (store::find_held_object(use.id)) continue;
    const fs::path from = store::object_path(source, use.id);
    const fs::path to = store::object_path(directory, use.id);
    const std::string fault = store::fault_of_object(from, use.id, false);
    if (!fault.empty()) throw StorageError("the training run cannot be run: " + use.place + ": " + fault);
    base::make_own_directory(to.parent_path());
    if (store::fault_of_object(to, use.id, false).empty()) continue;
    base::remove_tree(to);  // half a copy that a killed process has left
    base::link_file(from, to);
  }
}

void require_objects(const fs::path& directory, std::span<const ObjectUse> uses, bool contents) {
  std::map<std::string, std::string> fault_by_id;
  base::require_own_directory(directory / store::kObjectsDirectory);
  for (const std::string& id : ids_of(uses)) {
    if (!store::size_of_object(id)) {
      fault_by_id[id] = "\"" + id + "\" names no object";
      continue;
    }
    const fs::path path = store::object_path(directory, id);
    const auto held = store::find_held_object(id);
    std::string fault = store::fault_of_object(path, id, contents);
    if (held && !fault.empty()) base::remove_tree(path);
    if (held) {
      ObjectAccess::held(*held).write_into(directory);
    } else if (!fault.empty()) {
      fault_by_id[id] = std::move(fault);
    }
  }
  std::string text;
  for (const ObjectUse& use : uses) {
    if (const auto fault = fault_by_id.find(use.id); fault != fault_by_id.end())
      text += "\n  " + use.place + ": " + fault->second;
  }
  if (!text.empty())
    throw StorageError("the experiment in " + directory.string() + " cannot be continued without its objects:" + text +
                       "\nPut the same contents again, keep what cadre::put returns, and restore it once more");
}

void delete_other_objects(const fs::path& directory, std::span<const ObjectUse> uses) {
  const fs::path objects = directory / store::kObjectsDirectory;
  base::require_own_directory(objects);
  std::error_code unreadable;
  if (!fs::is_directory(objects, unreadable)) return;
  const std::set<std::string> needed = ids_of(uses);
  for (const std::string& name : base::list_directory(objects)) {
    if (needed.contains(name)) continue;
    const auto held = store::find_held_object(name);
    if (held) {
      ObjectAccess::held(*held).take_over_file(directory);
    } else {
      base::remove_inside(directory, {objects.filename().native() + "/" + name, objects.native()});
    }
  }
  fs::remove(objects, unreadable);  // if it is empty
}

std::vector<MissingCheckpoint> missing_checkpoints(const Value& value) {
  std::vector<ObjectUse> uses;
  add_uses(value, CheckpointAccess::kReferenceKind, "", uses);
  std::vector<MissingCheckpoint> missing;
  for (const auto& [place, directory] : uses) {
    if (std::string fault = fault_of_checkpoint(directory); !fault.empty())
      missing.push_back({place, std::move(fault)});
  }
  return missing;
}

}  // namespace cadre::control
