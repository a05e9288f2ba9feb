#include "store/held_objects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/system_error.h"
#include "store/object_files.h"

namespace cadre {
namespace fs = std::filesystem;
namespace {

struct HeldObjects {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<detail::HeldObject>, std::less<>> by_id;
};

// Never destroyed, because static objects can hold handles and are destroyed at an unknown time.
HeldObjects& held_objects() {
  static auto& instance = *new HeldObjects;
  return instance;
}

// The directory of the experiment that this process works for; empty: none. Any thread may read it.
struct ExperimentOfProcess {
  std::mutex mutex;
  std::optional<fs::path> directory;
};

ExperimentOfProcess& experiment_of_process() {
  static auto& instance = *new ExperimentOfProcess;
  return instance;
}

// Sets the directory and returns the one before.
std::optional<fs::path> exchange_experiment(std::optional<fs::path> directory) {
  const std::scoped_lock lock(experiment_of_process().mutex);
  return std::exchange(experiment_of_process().directory, std::move(directory));
}

// Writes an object's contents into an unnamed file in memory, sealed against changes.
base::FileDescriptor memory_with(std::span<const std::span<const std::byte>> pieces, const std::string& id) {
  const fs::path name = "cadre-object-" + id;
  base::FileDescriptor memory(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) base::throw_storage_error("make memory for", name);
  for (const std::span<const std::byte> piece : pieces) base::write_all(memory.get(), store::as_text(piece), name);
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    base::throw_storage_error("protect", name);
  return memory;
}

void delete_file(const fs::path& file) {
  std::error_code ignored;  // a remaining file is found and deleted when the experiment is opened again
  fs::remove(file, ignored);
  fs::remove(file.parent_path(), ignored);  // if it is empty
}

}  // namespace

namespace detail {

HeldObject::HeldObject(std::string id, std::size_t size, base::FileDescriptor memory)
    : id_(std::move(id)), size_(size), process_(::getpid()), contents_(std::move(memory)) {}

HeldObject::~HeldObject() {
  if (process_ != ::getpid()) return;
  for (const fs::path& file : leftover_files_) delete_file(file);
  HeldObjects& held = held_objects();
  const std::lock_guard lock(held.mutex);
  const auto entry = held.by_id.find(id_);
  if (entry != held.by_id.end() && entry->second.expired()) held.by_id.erase(entry);
}

std::shared_ptr<const base::MemoryMap> HeldObject::map() const {
  const std::lock_guard lock(mutex_);
  return std::make_shared<const base::MemoryMap>(contents_.get(), size_, "the object " + id_);
}

void HeldObject::write_into(const fs::path& directory) {
  const std::shared_ptr<const base::MemoryMap> contents = map();
  store::write_object(directory, id_, contents->bytes());
  const std::lock_guard lock(mutex_);
  const fs::path path = store::object_path(directory, id_);
  leftover_files_.erase(path);
  files_.insert(path);
  // The file stays open: it may be moved with its experiment, or deleted, while this object is held.
  if (base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); file) contents_ = std::move(file);
}

void HeldObject::take_over_file(const fs::path& directory) {
  const std::lock_guard lock(mutex_);
  const fs::path path = store::object_path(directory, id_);
  files_.erase(path);
  leftover_files_.insert(path);
}

}  // namespace detail

namespace store {

std::optional<ObjectRef> find_held_object(std::string_view id) {
  HeldObjects& held = held_objects();
  const std::lock_guard lock(held.mutex);
  const auto found = held.by_id.find(id);
  if (found == held.by_id.end()) return std::nullopt;
  auto object = found->second.lock();  // null if another thread has just released it
  return object ? std::optional(ObjectAccess::ref(std::move(object))) : std::nullopt;
}

void set_experiment_of_objects(fs::path directory) { exchange_experiment(std::move(directory)); }

ObjectsInReach::ObjectsInReach(fs::path experiment) : before_(exchange_experiment(std::move(experiment))) {}

ObjectsInReach::~ObjectsInReach() { exchange_experiment(std::move(before_)); }

}  // namespace store

Object ObjectAccess::object(std::shared_ptr<const base::MemoryMap> map) {
  const std::span<std::byte> bytes = map->bytes();
  return {std::move(map), bytes};
}

const std::string& ObjectRef::id() const { return object_->id(); }

std::size_t ObjectRef::size_bytes() const { return object_->size_bytes(); }

void Object::wrong_size(std::size_t item_bytes) const {
  throw InvalidArgument(fmt::format("the object has {} bytes, which is no multiple of {}", bytes_.size(), item_bytes));
}

Reference to_reference(const ObjectRef& object) { return {store::kObjectKind, object.id()}; }

ObjectRef put(std::span<const std::byte> bytes) { return put_pieces({&bytes, 1}); }

ObjectRef put(std::string_view text) { return put(std::as_bytes(std::span(text))); }

ObjectRef put_pieces(std::span<const std::span<const std::byte>> pieces) {
  base::ContentHash hash;
  std::size_t size = 0;
  for (const std::span<const std::byte> piece : pieces) {
    hash.add(store::as_text(piece));
    size += piece.size();
  }
  const std::string id = store::object_id(hash.hex(), size);
  if (auto held = store::find_held_object(id)) return *std::move(held);
  const auto object = std::make_shared<detail::HeldObject>(id, size, memory_with(pieces, id));
  HeldObjects& held = held_objects();
  const std::lock_guard lock(held.mutex);
  std::weak_ptr<detail::HeldObject>& entry = held.by_id[id];
  if (auto same = entry.lock()) return ObjectAccess::ref(std::move(same));  // put by another thread meanwhile
  entry = object;
  return ObjectAccess::ref(object);
}

Object get(const Reference& reference) {
  if (reference.kind != store::kObjectKind || !store::size_of_object(reference.id))
    throw InvalidArgument("there is no object " + to_json(reference) + ": a reference to one comes from cadre::put");
  if (const auto held = store::find_held_object(reference.id)) return get(*held);
  const std::optional<fs::path> experiment = [] {
    const std::scoped_lock lock(experiment_of_process().mutex);
    return experiment_of_process().directory;
  }();
  if (experiment)
    return ObjectAccess::object(store::map_object(store::object_path(*experiment, reference.id), reference.id));
  throw NotFound("the object " + reference.id + " is gone: no ObjectRef in this process names it any more");
}

Object get(const ObjectRef& object) { return ObjectAccess::object(ObjectAccess::held(object).map()); }

Object get_object(const Config& config, std::string_view key) {
  const auto reference = config.get<Reference>(key);
  const auto where = [&](const Error& error) { return "key \"" + std::string(key) + "\": " + error.what(); };
  try {
    return get(reference);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(where(error));
  } catch (const NotFound& error) {
    throw NotFound(where(error));
  } catch (const StorageError& error) {
    throw StorageError(where(error));
  }
}

}  // namespace cadre
