// The objects that this process has handles of, and where a worker finds those of its experiment.
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

// What all ObjectRefs of an object share. Its contents lie in memory until they are a file.
class HeldObject {
 public:
  HeldObject(std::string id, std::size_t size, base::FileDescriptor memory);
  // Deletes the files that no experiment needs.
  ~HeldObject();
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;

  const std::string& id() const { return id_; }
  std::size_t size_bytes() const { return size_; }
  // Throws NotFound where somebody has deleted its files.
  std::shared_ptr<const base::MemoryMap> map() const;

  // Makes it a file of the experiment in `directory`, which needs it from now on, and gives its memory back. Throws
  // what store::write_object does.
  void write_into(const std::filesystem::path& directory);
  // The experiment needs it no more: its file goes with this object.
  void take_over_file(const std::filesystem::path& directory);

 private:
  const std::string id_;
  const std::size_t size_;
  const pid_t process_;  // a fork of it has copies of the handles, and deletes nothing
  mutable std::mutex mutex_;
  base::FileDescriptor memory_;                     // none when it is a file
  std::set<std::filesystem::path> files_;           // of experiments, which need it
  std::set<std::filesystem::path> leftover_files_;  // of experiments that need it no more
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

// The object with this id, if this process has a handle of it.
std::optional<ObjectRef> find_held_object(std::string_view id);

// In a worker: the directory of its experiment.
void set_experiment_of_objects(std::filesystem::path directory);

}  // namespace cadre::store
