// Converts state to a Value and back. Each struct lists its fields once, for both writing and reading:
//
//   void fields(auto& archive, Is<Point> auto& point) { archive("x", point.x); archive("y", point.y); }
//
// A class has the same list as a static member, which can access private fields. Reading a Value that was written
// from another list throws NotFound or InvalidArgument.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/inner_path.h"
#include "base/random.h"
#include "cadre/value.h"

namespace cadre::base {

// A T or a const T: a LoadArchive gets the former, a SaveArchive the latter.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

namespace detail {

void call_fields(auto& archive, auto& object) {
  using Object = std::remove_cvref_t<decltype(object)>;
  if constexpr (requires { Object::fields(archive, object); }) {
    Object::fields(archive, object);
  } else {
    fields(archive, object);
  }
}

}  // namespace detail

class SaveArchive {
 public:
  void operator()(const char* key, const auto& field) { entries_.emplace_back(key, to_value(field)); }

  // Writes a field that older files lack: LoadArchive leaves a missing one unchanged.
  void added(const char* key, const auto& field) { (*this)(key, field); }
  // Writes a path inside a directory. LoadArchive throws StorageError for any other path.
  void inner_path(const char* key, const std::string& path) { (*this)(key, path); }

  template <class T>
  static Value to_value(const T& object) {
    if constexpr (std::is_enum_v<T> || std::same_as<T, std::uint64_t>) {
      return static_cast<std::int64_t>(object);
    } else if constexpr (std::constructible_from<Value, const T&>) {
      return object;
    } else if constexpr (requires { object.dict(); }) {
      return object.value();
    } else {
      SaveArchive archive;
      detail::call_fields(archive, object);
      return std::move(archive.entries_);
    }
  }
  template <class T>
  static Value to_value(const std::optional<T>& object) {
    return object ? to_value(*object) : Value();
  }
  template <class T>
  static Value to_value(const std::vector<T>& items) {
    List list;
    for (const T& item : items) list.push_back(to_value(item));
    return list;
  }
  static Value to_value(const RandomStream& stream) { return static_cast<std::int64_t>(stream.index()); }
  template <class K, class V>
  static Value to_value(const std::map<K, V>& entries) {
    List list;
    for (const auto& [key, value] : entries) list.push_back(cadre::list(to_value(key), to_value(value)));
    return list;
  }

 private:
  Dict entries_;
};

class LoadArchive {
 public:
  explicit LoadArchive(const Value& value) : entries_(value.dict()) {}

  void operator()(const char* key, auto& field) { load(entries_.at(key), field); }

  void added(const char* key, auto& field) {
    if (entries_.contains(key)) load(entries_.at(key), field);
  }

  void inner_path(const char* key, std::string& path) {
    (*this)(key, path);
    path = InnerPath(path, key).text();
  }

  template <class T>
  static void load(const Value& value, T& object) {
    if constexpr (std::is_enum_v<T> || std::same_as<T, std::uint64_t>) {
      object = static_cast<T>(value.get<std::int64_t>());
    } else if constexpr (std::constructible_from<Value, const T&>) {
      object = value.get<T>();
    } else if constexpr (requires { object.dict(); }) {
      object = T(value);
    } else {
      LoadArchive archive(value);
      detail::call_fields(archive, object);
    }
  }
  template <class T>
  static void load(const Value& value, std::optional<T>& object) {
    if (value.is_null()) return object.reset();
    load(value, object.emplace());
  }
  template <class T>
  static void load(const Value& value, std::vector<T>& items) {
    items.clear();
    for (const Value& item : value.items()) load(item, items.emplace_back());
  }
  static void load(const Value& value, RandomStream& stream) {
    stream.seek(static_cast<std::uint64_t>(value.get<std::int64_t>()));
  }
  template <class K, class V>
  static void load(const Value& value, std::map<K, V>& entries) {
    entries.clear();
    for (const Value& entry : value.items()) {
      if (entry.items().size() != 2) throw InvalidArgument("an entry is " + to_json(entry) + " and no [key, value]");
      K key{};
      load(entry.items()[0], key);
      load(entry.items()[1], entries[key]);
    }
  }

 private:
  Config entries_;
};

}  // namespace cadre::base
