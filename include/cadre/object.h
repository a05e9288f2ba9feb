/// \file
/// The object store: bytes that all trials of an experiment read, passed by reference and never copied.
///
///     const ObjectRef images = put(pixels);                        // a std::vector<float>
///     ... .param_space = {{"images", images}, {"lr", tune::uniform(0, 1)}} ...
///     void train(const Config& config) {
///       const Object object = get_object(config, "images");
///       const std::span<float> pixels = object.as<float>();        // nothing was read yet, and nothing is copied
///
/// Objects are named by their contents: equal bytes are one object, however often they are put, even in different runs
/// of the program. When an experiment begins, every object that its options refer to becomes a file of the experiment,
/// which all its workers map; memory is used once, regardless of their number. When a trial begins, the same happens to
/// objects that a function of the search space has put into its config. The file is kept as long as a trial of the
/// experiment that has failed or not yet ended could use it, or an ObjectRef in this process names it.
///
/// Threads: any.
#pragma once

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cadre/error.h"
#include "cadre/value.h"

namespace cadre {

namespace detail {
class HeldObject;
}  // namespace detail

/// A handle of an object that this process holds. Copies refer to the same object; the last of them releases it: its
/// memory, and its file in experiments that do not need it any more. May be a value in any config or search space; the
/// code that puts it there must keep an ObjectRef until the Tuner is made, and a search space's function until its
/// trial has begun. A moved-from ObjectRef may only be assigned to or destroyed.
class ObjectRef {
 public:
  /// Returns the name of its contents: 32 hexadecimal digits (XXH3, 128 bits), '-', and its size. Equal in every
  /// process.
  const std::string& id() const;
  std::size_t size_bytes() const;  ///< returns the size of its contents, in bytes

 private:
  friend class ObjectAccess;
  explicit ObjectRef(std::shared_ptr<detail::HeldObject> object) : object_(std::move(object)) {}

  std::shared_ptr<detail::HeldObject> object_;
};

/// Converts an ObjectRef to a value of a config: {"object", id}.
Reference to_reference(const ObjectRef& object);

/// The mapped contents of an object: pages are read on first access and shared by all processes that map the same
/// object. They may be written to: a write makes a private copy of its page, which is visible in this mapping only and
/// lasts until the last copy of this Object is destroyed. Copies share one mapping, which stays valid if the object's
/// file is deleted.
///
/// The whole size counts towards TrialLimits::memory_bytes, as does all memory that a process may write to.
class Object {
 public:
  /// Returns the contents, which begin at a page boundary. Valid as long as a copy of this Object exists.
  std::span<std::byte> bytes() const { return bytes_; }
  /// Returns the contents as text.
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// Returns the contents as an array of T. Throws InvalidArgument if their size is not a multiple of T's.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::span<T> as() const {
    static_assert(alignof(T) <= 4096, "an object begins at a page's boundary");
    if (bytes_.size() % sizeof(T) != 0) wrong_size(sizeof(T));
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// Returns the owner of the mapping, for users that keep a part of it.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  friend class ObjectAccess;
  Object(std::shared_ptr<const void> owner, std::span<std::byte> bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  [[noreturn]] void wrong_size(std::size_t item_bytes) const;

  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
};

/// Puts bytes into the object store. They are copied once, into memory of this process, or not at all if it already
/// holds the same contents. An object that is put outside an experiment's main program, in a worker, is for that worker
/// only. Throws StorageError if the system does not provide the memory.
ObjectRef put(std::span<const std::byte> bytes);
/// Puts text, without a zero byte at its end.
ObjectRef put(std::string_view text);
/// Puts several pieces as one object, one after the other.
ObjectRef put_pieces(std::span<const std::span<const std::byte>> pieces);
/// Puts an array or a vector of numbers or of plain structs, including their padding bytes.
template <std::ranges::contiguous_range Range>
  requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<std::ranges::range_value_t<Range>> &&
           (!std::is_pointer_v<std::ranges::range_value_t<Range>>) &&
           (!std::ranges::view<std::ranges::range_value_t<Range>>) &&
           (!std::convertible_to<const Range&, std::string_view>)
ObjectRef put(const Range& items) {
  return put(std::as_bytes(std::span(std::ranges::data(items), std::ranges::size(items))));
}

/// Returns the object that a config refers to: one that this process holds or, in a worker and in what fit() calls, a
/// file of the experiment. It is mapped, which takes no time and reads nothing; every call makes a mapping of its own.
/// Throws InvalidArgument if the reference is not an object's; NotFound, with id and path, if the object does not exist
/// any more; StorageError if its file has another size or cannot be mapped.
Object get(const Reference& reference);
/// Returns an object that this process holds; otherwise as above.
Object get(const ObjectRef& object);
/// Returns the object at a key or path of a config. Throws the errors of get, and NotFound or InvalidArgument, with the
/// key, if the config has no reference there.
Object get_object(const Config& config, std::string_view key);

}  // namespace cadre
