// The objects to which this process has handles, and the directory where a worker finds its experiment's objects.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/memory_map.h"
#include "cadre/object.h"

namespace cadre::detail {

// An object, shared by all its ObjectRefs. Its contents are in memory until they are written to a file, which stays
// open.
class HeldObject {
 public:
  HeldObject(std::string id, std::size_t size, base::FileDescriptor memory);
  // Deletes the files that no experiment needs any more.
  ~HeldObject();
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;

  const std::string& id() const { return id_; }
  std::size_t size_bytes() const { return size_; }
  // Maps the contents.
  std::shared_ptr<const base::MemoryMap> map() const;

  // Writes the object as a file of the experiment in `directory`, which needs it from now on, and frees its memory.
  // Throws what store::write_object throws.
  void write_into(const std::filesystem::path& directory);
  // Marks its file in `directory` as no longer needed by the experiment: it is deleted with this object.
  void take_over_file(const std::filesystem::path& directory);

 private:
  const std::string id_;
  const std::size_t size_;
  const pid_t process_;  // its forks have copies of the handles, and must not delete files
  mutable std::mutex mutex_;
  base::FileDescriptor contents_;                   // memory, and then the file that was written last
  std::set<std::filesystem::path> files_;           // in experiments that need it
  std::set<std::filesystem::path> leftover_files_;  // in experiments that no longer need it
};

}  // namespace cadre::detail

namespace cadre {

class ObjectAccess {
 public:
  static ObjectRef ref(std::shared_ptr<detail::HeldObject> object) { return ObjectRef(std::move(object)); }
  static detail::HeldObject& held(const ObjectRef& object) { return *object.object_; }
  static Object object(std::shared_ptr<const base::MemoryMap> map);
};

}  // namespace cadre

namespace cadre::store {

// Returns the object with this id, if this process has a handle to it.
std::optional<ObjectRef> find_held_object(std::string_view id);

// Sets the directory of the experiment whose objects get() finds, in a worker.
void set_experiment_of_objects(std::filesystem::path directory);

// Does the same while it lives, in a controller, whose functions may ask for objects that another process has put.
class ObjectsInReach {
 public:
  explicit ObjectsInReach(std::filesystem::path experiment);
  ~ObjectsInReach();
  ObjectsInReach(const ObjectsInReach&) = delete;
  ObjectsInReach& operator=(const ObjectsInReach&) = delete;

 private:
  std::optional<std::filesystem::path> before_;
};

}  // namespace cadre::store
