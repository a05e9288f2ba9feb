/// \file
/// The object store: bytes that all trials of an experiment read, passed to them by reference and never copied.
///
///     const ObjectRef images = put(pixels);                        // a std::vector<float>
///     ... .param_space = {{"images", images}, {"lr", tune::uniform(0, 1)}} ...
///     void train(const Config& config) {
///       const Object object = get_object(config, "images");
///       const std::span<float> pixels = object.as<float>();        // nothing was read yet, and nothing is copied
///
/// Objects are named by their contents: the same bytes are the same object, however often they are put, also in another
/// run of the program. When an experiment begins, every object that its options refer to becomes a file of it, which
/// all its workers map; memory is used once, whatever their number. So does, when a trial begins, an object that a
/// function of the search space put into its config. The file stays as long as a trial of the experiment that has not
/// ended, or has failed, could use it, or an ObjectRef in this process names it.
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

/// An object that this process holds. Copies are the same object; the last of them lets it go: its memory, and its file
/// in experiments that need it no more. May be a value wherever a config or a search space has one; whoever puts it
/// there keeps an ObjectRef until the Tuner is made, and a sample_from function one until its trial has begun. A
/// moved-from ObjectRef may only be assigned to or destroyed.
class ObjectRef {
 public:
  /// The name of its contents: 32 hexadecimal digits (XXH3, 128 bits), '-', and its size. The same in every process.
  const std::string& id() const;
  std::size_t size_bytes() const;  ///< of its contents

 private:
  friend class ObjectAccess;
  explicit ObjectRef(std::shared_ptr<detail::HeldObject> object) : object_(std::move(object)) {}

  std::shared_ptr<detail::HeldObject> object_;
};

/// What makes an ObjectRef a value of a config: {"object", id}.
Reference to_reference(const ObjectRef& object);

/// The contents of an object, mapped: pages are read when they are touched and shared with everybody who maps the same
/// object. They may be written to: what is written is a copy of that page which nobody else sees, and which is gone
/// with the last copy of this Object. Copies share one mapping, which stays good when the object's file is deleted.
///
/// The whole size counts towards TrialLimits::memory_bytes, as all memory does that a process may write to.
class Object {
 public:
  /// The contents, which begin at a page's boundary. Good as long as a copy of this Object exists.
  std::span<std::byte> bytes() const { return bytes_; }
  /// The contents as text.
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// The contents as an array of T. InvalidArgument where their size is no multiple of T's.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::span<T> as() const {
    static_assert(alignof(T) <= 4096, "an object begins at a page's boundary");
    if (bytes_.size() % sizeof(T) != 0) wrong_size(sizeof(T));
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// What owns the mapping, for those that keep a part of it.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  friend class ObjectAccess;
  Object(std::shared_ptr<const void> owner, std::span<std::byte> bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  [[noreturn]] void wrong_size(std::size_t item_bytes) const;

  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
};

/// Puts bytes into the object store: they are copied once, into memory of this process, or not at all where it holds
/// the same contents already. Outside an experiment's main program, in a worker, the object is for that worker only.
/// Throws StorageError where the system does not give the memory.
ObjectRef put(std::span<const std::byte> bytes);
/// The same of text, without a zero byte at its end.
ObjectRef put(std::string_view text);
/// The same of several pieces that follow each other.
ObjectRef put_pieces(std::span<const std::span<const std::byte>> pieces);
/// The same of an array or a vector of numbers or of plain structs, whose padding bytes count.
template <std::ranges::contiguous_range Range>
  requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<std::ranges::range_value_t<Range>> &&
           (!std::is_pointer_v<std::ranges::range_value_t<Range>>) &&
           (!std::ranges::view<std::ranges::range_value_t<Range>>) &&
           (!std::convertible_to<const Range&, std::string_view>)
ObjectRef put(const Range& items) {
  return put(std::as_bytes(std::span(std::ranges::data(items), std::ranges::size(items))));
}

/// The object that a config refers to. In a worker it is a file of the experiment, elsewhere an object that this
/// process holds. It is mapped, which takes no time and reads nothing; every call makes a mapping of its own. Throws
/// InvalidArgument where the reference is no object's; NotFound, with id and path, where the object is gone;
/// StorageError where its file has another size or cannot be mapped.
Object get(const Reference& reference);
/// The same of an object that this process holds.
Object get(const ObjectRef& object);
/// The object at a key or path of a config. Throws what get throws, and NotFound or InvalidArgument, with the key,
/// where the config has no reference there.
Object get_object(const Config& config, std::string_view key);

}  // namespace cadre
