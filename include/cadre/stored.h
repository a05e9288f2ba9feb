/// \file
/// Structs as Values and back, by the names of their members: for the options and the state of a program's own
/// schedulers, and for everything that Cadre stores.
///
///     struct Point { double x = 0; double y = 0; };
///     const Value value = to_stored(Point{1, 2});           // {"x": 1.0, "y": 2.0}
///     const auto point = from_value<Point>(value);          // throws InvalidArgument
///
/// A struct has public members and no constructor. Members may be numbers, text, enumerations (by name), Values,
/// durations, paths, such structs, and optional, vector, map, set, pair, array, shared_ptr and variant of these. There
/// are at most 40 members. A member that the value lacks keeps its default, so members may be added. Anything else that
/// does not fit is refused with the path to it: a key without a member, a value of another type, an unknown name.
///
/// A type with a form of its own has two functions in its namespace:
///
///     Value stored_form(const Colour& colour);
///     void read_stored(Colour& colour, const Stored& stored);
///
/// A member whose type has `bool is_set() const` is stored only if it is set; the state of a scheduler has none of
/// these. Members that are not stored are named by a specialization: template <> inline constexpr auto kNotStored<T> =
/// member_list("a", "b"); and an alternative of a variant that is not called as its type by kStoredName.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/detail/enum_names.h"
#include "cadre/detail/function_name.h"
#include "cadre/detail/member_names.h"
#include "cadre/error.h"
#include "cadre/value.h"

namespace cadre {

/// A value that is read, and its path in the whole.
class Stored {
 public:
  /// Begins at the whole; `value` must outlive this object.
  explicit Stored(const Value& value) : value_(value) {}

  /// Returns the value.
  const Value& value() const { return value_; }
  /// Returns the value at a key or index of this one.
  Stored at(std::string_view key, const Value& entry) const {
    return {entry, path_.empty() ? std::string(key) : path_ + "/" + std::string(key)};
  }
  /// Returns the value as a T. Throws InvalidArgument that names the path if it has another type, as the next two do.
  template <class T>
  T get() const {
    try {
      return value_.get<T>();
    } catch (const InvalidArgument& error) {
      refuse(error.what());
    }
  }
  /// Returns the entries of a dictionary.
  const Dict& dict() const {
    if (!value_.is_dict()) refuse(to_json(value_) + " is no dictionary");
    return value_.dict();
  }
  /// Returns the items of a list.
  const List& items() const {
    if (!value_.is_list()) refuse(to_json(value_) + " is no list");
    return value_.items();
  }
  /// Throws InvalidArgument that names the path.
  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgument(path_.empty() ? why : path_ + ": " + why);
  }

 private:
  Stored(const Value& value, std::string path) : value_(value), path_(std::move(path)) {}

  const Value& value_;
  std::string path_ = {};
};

/// Calls `read` and returns what it returns; throws StorageError that names `source` instead of InvalidArgument.
template <class Read>
decltype(auto) reading(const std::string& source, const Read& read) {
  try {
    return read();
  } catch (const InvalidArgument& error) {
    throw StorageError(source + ": " + error.what() + ". The store is damaged, or of another version of Cadre");
  }
}

/// The name of an alternative of a variant: its `type`.
template <class T>
inline constexpr std::string_view kStoredName = detail::type_name<T>();

// ---- What has a form of its own

/// Returns the names of members, for kNotStored.
template <class... Text>
constexpr std::array<std::string_view, sizeof...(Text)> member_list(Text... text) {
  return {text...};
}
/// The members of T that are not stored; none unless specialized.
template <class T>
inline constexpr std::array<std::string_view, 0> kNotStored{};

/// Accepts types whose objects, as members, are stored only if they are set.
template <class T>
concept StoredIfSet = requires(const T& object) {
  { object.is_set() } -> std::same_as<bool>;
};

/// Accepts types with a stored_form() of their own.
template <class T>
concept WrittenInOwnForm = requires(const T& object) {
  { stored_form(object) } -> std::convertible_to<Value>;
};
/// Accepts types with a read_stored() of their own.
template <class T>
concept ReadInOwnForm = requires(T object, const Stored& stored) { read_stored(object, stored); };

namespace detail {

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = std::is_floating_point_v<Rep>;

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... Arguments, template <class...> class Template>
inline constexpr bool is_a<Template<Arguments...>, Template> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t Size>
inline constexpr bool is_array<std::array<T, Size>> = true;

// Calls use(name, member, the same member of each of the others) for all members that are stored.
template <class T, class... Other>
void for_each_stored_member(T& object, auto&& use, Other&... others) {
  using Object = std::remove_const_t<T>;
  constexpr auto all_names = detail::member_names<Object>();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto use_stored = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
      constexpr std::string_view name = all_names[Index];
      constexpr bool is_stored = std::ranges::find(kNotStored<Object>, name) == kNotStored<Object>.end();
      if constexpr (is_stored)
        use(name, std::get<Index>(detail::tie_members(object)), std::get<Index>(detail::tie_members(others))...);
    };
    (use_stored(std::integral_constant<std::size_t, I>()), ...);
  }(std::make_index_sequence<all_names.size()>());
}

template <class T>
concept StoredStruct = std::is_empty_v<T> || detail::NamedStruct<T>;

}  // namespace detail

// ---- Writing

/// Returns an object as a Value.
template <class T>
Value to_stored(const T& object) {
  if constexpr (WrittenInOwnForm<T>) {
    return stored_form(object);
  } else if constexpr (std::is_enum_v<T>) {
    return detail::enum_name(object);
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    // A Value's integers have a sign.
    if (object > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::to_string(object);
    return static_cast<std::int64_t>(object);
  } else if constexpr (std::same_as<T, char>) {
    return std::string(1, object);
  } else if constexpr (std::convertible_to<const T&, Value>) {
    return object;
  } else if constexpr (requires {
                         object.dict();
                         object.value();
                       }) {
    return object.value();  // Config, Metrics
  } else if constexpr (detail::is_duration<T>) {
    return std::chrono::duration<double>(object).count();
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    return object.string();
  } else if constexpr (detail::is_a<T, std::optional>) {
    return object ? to_stored(*object) : Value();
  } else if constexpr (detail::is_a<T, std::shared_ptr>) {
    return object ? to_stored(*object) : Value();
  } else if constexpr (detail::is_a<T, std::variant>) {
    return std::visit(
        []<class Type>(const Type& alternative) {
          const Value value = to_stored(alternative);
          Dict entries;
          entries.reserve(1 + value.dict().size());
          entries.emplace_back("type", kStoredName<Type>);
          entries.insert(entries.end(), value.dict().begin(), value.dict().end());
          return Value(std::move(entries));
        },
        object);
  } else if constexpr (detail::is_a<T, std::pair> || detail::is_a<T, std::tuple>) {
    return std::apply([](const auto&... part) { return list(to_stored(part)...); }, object);
  } else if constexpr (detail::is_a<T, std::map>) {
    if constexpr (std::same_as<typename T::key_type, std::string>) {
      Dict entries;
      for (const auto& [key, item] : object) entries.emplace_back(key, to_stored(item));
      return entries;
    } else {
      List items;
      for (const auto& [key, item] : object) items.push_back(list(to_stored(key), to_stored(item)));
      return items;
    }
  } else if constexpr (std::ranges::range<T>) {
    if constexpr (requires(typename T::value_type entry) {
                    { entry.first } -> std::convertible_to<std::string>;
                  }) {
      Dict entries;  // a list of names with what they have
      for (const auto& [name, item] : object) entries.emplace_back(name, to_stored(item));
      return entries;
    } else {
      List items;
      for (const auto& item : object) items.push_back(to_stored(item));
      return items;
    }
  } else {
    static_assert(detail::StoredStruct<T>,
                  "this type has no members that could be stored; give it stored_form() and read_stored()");
    Dict entries;
    if constexpr (!std::is_empty_v<T>) {
      entries.reserve(detail::count_members<T>());
      detail::for_each_stored_member(object, [&]<class Member>(std::string_view name, const Member& member) {
        if constexpr (StoredIfSet<Member>) {
          if (!member.is_set()) return;
        }
        entries.emplace_back(name, to_stored(member));
      });
    }
    return entries;
  }
}

/// Returns to_stored(object) without the entries of members that are as in `standard`. Reading it into a copy of
/// `standard` gives the object back.
template <detail::NamedStruct T>
Value stored_changes(const T& object, const T& standard) {
  Dict changes;
  const auto add = [&changes]<class Member>(std::string_view name, const Member& member, const Member& usual) {
    if constexpr (std::equality_comparable<Member>) {
      if (member != usual) changes.emplace_back(name, to_stored(member));
    } else if (Value value = to_stored(member); value != to_stored(usual)) {
      changes.emplace_back(name, std::move(value));
    }
  };
  detail::for_each_stored_member(object, add, standard);
  return changes;
}

// ---- Reading

/// Reads a Value into an object. Throws InvalidArgument with the path to what does not fit; the object is unspecified
/// then.
template <class T>
void from_stored(T& object, const Stored& stored);

namespace detail {

// Reads the members out of the entries. Each key must be that of a member, or one of `others`.
template <class T>
void members_from_stored(T& object, const Stored& stored, std::set<std::string_view> others = {}) {
  std::set<std::string_view> known = std::move(others);
  if constexpr (!std::is_empty_v<T>) {
    for_each_stored_member(object, [&](std::string_view name, auto& member) {
      known.insert(name);
      if (const Value* entry = find_entry(stored.dict(), name)) from_stored(member, stored.at(name, *entry));
    });
  }
  for (const auto& [key, entry] : stored.dict()) {
    if (known.erase(key) == 0) stored.at(key, entry).refuse("no such member is known, or it is there twice");
  }
}

template <class Variant, class... Type>
bool alternative_from_stored(Variant& variant, std::string_view type, const Stored& stored,
                             std::type_identity<std::variant<Type...>>) {
  const auto take = [&]<class Alternative>(std::type_identity<Alternative>) {
    if (type != kStoredName<Alternative>) return false;
    auto& object = variant.template emplace<Alternative>();
    if constexpr (ReadInOwnForm<Alternative>) {
      read_stored(object, stored);
    } else {
      members_from_stored(object, stored, {"type"});
    }
    return true;
  };
  return (take(std::type_identity<Type>()) || ...);
}

}  // namespace detail

template <class T>
void from_stored(T& object, const Stored& stored) {
  if constexpr (ReadInOwnForm<T>) {
    read_stored(object, stored);
  } else if constexpr (std::is_enum_v<T>) {
    const auto name = stored.get<std::string>();
    const auto value = detail::enum_value<T>(name);
    if (!value) stored.refuse("\"" + name + "\" is none of " + detail::enum_names_text<T>());
    object = *value;
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    if (!stored.value().is_string()) {
      const auto number = stored.get<std::int64_t>();
      if (number < 0) stored.refuse(std::to_string(number) + " is below 0");
      object = static_cast<std::uint64_t>(number);
      return;
    }
    const auto text = stored.get<std::string>();
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, object);
    if (error != std::errc() || stop != end) stored.refuse("\"" + text + "\" is no number from 0 to 2^64 - 1");
  } else if constexpr (std::same_as<T, char>) {
    const auto text = stored.get<std::string>();
    if (text.size() != 1) stored.refuse("\"" + text + "\" is not one character");
    object = text.front();
  } else if constexpr (std::same_as<T, Value>) {
    object = stored.value();
  } else if constexpr (std::same_as<T, Dict>) {
    object = stored.dict();
  } else if constexpr (std::same_as<T, List>) {
    object = stored.items();
  } else if constexpr (std::convertible_to<const T&, Value>) {
    object = stored.get<T>();
  } else if constexpr (requires {
                         object.dict();
                         object.value();
                       }) {
    object = T(stored.dict());
  } else if constexpr (detail::is_duration<T>) {
    object = T(stored.get<double>());
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    object = stored.get<std::string>();
  } else if constexpr (detail::is_a<T, std::optional>) {
    if (stored.value().is_null()) return object.reset();
    from_stored(object.emplace(), stored);
  } else if constexpr (detail::is_a<T, std::shared_ptr>) {
    if (stored.value().is_null()) return object.reset();
    const auto made = std::make_shared<std::remove_const_t<typename T::element_type>>();
    from_stored(*made, stored);
    object = made;
  } else if constexpr (detail::is_a<T, std::variant>) {
    const Value* type = find_entry(stored.dict(), "type");
    if (type == nullptr) stored.refuse("it has no \"type\"");
    const auto name = stored.at("type", *type).get<std::string>();
    if (!detail::alternative_from_stored(object, name, stored, std::type_identity<T>()))
      stored.refuse("the type \"" + name + "\" is unknown");
  } else if constexpr (detail::is_a<T, std::pair> || detail::is_a<T, std::tuple>) {
    const List& items = stored.items();
    if (items.size() != std::tuple_size_v<T>)
      stored.refuse(to_json(stored.value()) + " has not " + std::to_string(std::tuple_size_v<T>) + " parts");
    std::size_t next = 0;
    const auto take = [&](auto& part) {
      from_stored(part, stored.at(std::to_string(next), items[next]));
      ++next;
    };
    std::apply([&](auto&... part) { (take(part), ...); }, object);
  } else if constexpr (detail::is_a<T, std::map>) {
    object.clear();
    if constexpr (std::same_as<typename T::key_type, std::string>) {
      for (const auto& [key, entry] : stored.dict()) from_stored(object[key], stored.at(key, entry));
    } else {
      std::vector<std::pair<typename T::key_type, typename T::mapped_type>> entries;
      from_stored(entries, stored);
      for (auto& [key, item] : entries) object.emplace(std::move(key), std::move(item));
    }
  } else if constexpr (detail::is_a<T, std::set>) {
    std::vector<typename T::key_type> items;
    from_stored(items, stored);
    object = T(items.begin(), items.end());
  } else if constexpr (detail::is_array<T>) {
    if (stored.items().size() != object.size())
      stored.refuse(to_json(stored.value()) + " has not " + std::to_string(object.size()) + " items");
    for (std::size_t i = 0; i < object.size(); ++i)
      from_stored(object[i], stored.at(std::to_string(i), stored.items()[i]));
  } else if constexpr (detail::is_a<T, std::vector>) {
    object.clear();
    using Item = typename T::value_type;
    if constexpr (requires(Item entry) {
                    { entry.first } -> std::convertible_to<std::string>;
                  }) {
      for (const auto& [name, entry] : stored.dict()) {
        object.emplace_back().first = name;
        from_stored(object.back().second, stored.at(name, entry));
      }
    } else {
      for (const Value& item : stored.items()) {
        Item made{};
        from_stored(made, stored.at(std::to_string(object.size()), item));
        object.push_back(std::move(made));
      }
    }
  } else {
    static_assert(detail::StoredStruct<T>,
                  "this type has no members that could be stored; give it stored_form() and read_stored()");
    detail::members_from_stored(object, stored);
  }
}

/// Reads a struct whose entries stand among those of the keys `others`.
template <class T>
void from_stored(T& object, const Stored& stored, std::set<std::string_view> others) {
  detail::members_from_stored(object, stored, std::move(others));
}
/// Returns the object that a Value describes.
template <class T>
T from_stored(const Stored& stored) {
  T object{};
  from_stored(object, stored);
  return object;
}
/// Returns the object that to_stored() was given. Throws InvalidArgument with the path to what does not fit.
template <class T>
T from_value(const Value& value) {
  return from_stored<T>(Stored(value));
}
/// Does the same; throws StorageError that names `source`.
template <class T>
T from_stored(const Value& value, const std::string& source) {
  return reading(source, [&] { return from_value<T>(value); });
}

/// Does the same for a struct of which no member may be missing.
template <class T>
T complete_from_value(const Value& value) {
  const Stored stored(value);
  auto object = from_stored<T>(stored);
  detail::for_each_stored_member(object, [&](std::string_view name, const auto&) {
    if (find_entry(stored.dict(), name) == nullptr) stored.at(name, value).refuse("it is missing");
  });
  return object;
}
/// Reads a file whose struct has a member `format`, which must be that of T().
template <class T>
T document_from_value(const Value& value) {
  const Value* format = find_entry(Stored(value).dict(), "format");
  if (format == nullptr || *format != Value(T().format))
    throw InvalidArgument("it has format " + (format == nullptr ? "null" : to_json(*format)) +
                          ", and this program reads format " + std::to_string(T().format) +
                          ": use the version of Cadre that wrote it");
  return complete_from_value<T>(value);
}

}  // namespace cadre
