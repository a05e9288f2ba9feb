/// \file
/// Values of configs, search spaces and results: nested and ordered, like JSON, with exact 64-bit integers, NaN and
/// infinities.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/error.h"

namespace cadre {

class Value;
struct DictEntry;

/// The items of a list.
using List = std::vector<Value>;
/// Entries in the order in which they were written. Cadre returns only Dicts with unique keys.
using Dict = std::vector<std::pair<std::string, Value>>;

/// A reference in a config to something that it carries by name instead of by value: a checkpoint, a dataset, a stored
/// object.
struct Reference {
  std::string kind;                                   ///< kind of the target: "checkpoint"
  std::string id;                                     ///< id of the target; for a checkpoint the directory's path
  bool operator==(const Reference&) const = default;  ///< compares kind and id
};

namespace detail {
template <class T>
concept SignedInteger = std::signed_integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
template <class T>
concept UnsignedInteger = std::unsigned_integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
template <class T>
concept Referable = requires(const T& t) {
  { to_reference(t) } -> std::same_as<Reference>;
};
// A class that a reference is read as, such as Checkpoint.
template <class T>
concept MadeOfReference = requires(const Reference& reference) {
  { T::from_reference(reference) } -> std::same_as<T>;
};
// Accepts the types that Value::get returns.
template <class T>
inline constexpr bool is_gettable =
    std::same_as<T, bool> || SignedInteger<T> || UnsignedInteger<T> || std::floating_point<T> ||
    std::same_as<T, std::string> || std::same_as<T, Value> || std::same_as<T, Reference> || MadeOfReference<T>;
template <class T>
inline constexpr bool is_gettable<std::vector<T>> = is_gettable<T>;
template <>
inline constexpr bool is_gettable<Dict> = true;

// ---- Types that are no values, sorted by the replacement that compile errors suggest.

template <class T>
concept TensorLike = requires(const T& t) {
  t.item();
  t.numel();
};
template <class T>
concept OptionalLike = requires(const T& t) {
  t.has_value();
  *t;
};
template <class T>
concept RangeLike = requires(const T& t) {
  t.begin();
  t.end();
};
template <class T>
concept PointerLike = std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>;
template <class T>
concept FunctionLike =
    std::is_function_v<T> || std::is_function_v<std::remove_pointer_t<T>> || requires { &T::operator(); };
}  // namespace detail

/// \cond macros of Cadre's own
// Marks a declaration that is chosen only by mistake, with a sentence that says how to correct it. The compiler shows
// it at the line with the mistake.
#if defined(__has_attribute)
#if __has_attribute(unavailable)  // clang, g++ 12
#define CADRE_MISTAKE(sentence) __attribute__((unavailable(sentence)))
#endif
#endif
#ifndef CADRE_MISTAKE
#define CADRE_MISTAKE(sentence)
#endif
// Does the same for a function with an ellipsis, which must be deleted: it could not accept braces otherwise.
#if defined(__clang__) && defined(__cpp_deleted_function)
#define CADRE_DELETED(sentence)                                                                 \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") = \
      delete (sentence)_Pragma("clang diagnostic pop")
#else
#define CADRE_DELETED(sentence) = delete
#endif
/// \endcond

/// One value: null, bool, 64-bit signed integer, double, text (UTF-8), list, dictionary or reference. Copying is cheap:
/// lists and dictionaries are shared and never change.
class Value {
 public:
  /// The stored alternatives of a value; std::monostate is null.
  using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::shared_ptr<const List>,
                            std::shared_ptr<const Dict>, Reference>;

  /// Makes null.
  Value() = default;
  /// Makes a bool. No other type converts: a pointer must not become a bool.
  Value(std::same_as<bool> auto value) : data_(value) {}
  /// Makes an integer, from any integer type except char.
  Value(detail::SignedInteger auto value) : data_(std::int64_t{value}) {}
  /// Makes an integer; throws InvalidArgument above 2^63 - 1.
  Value(detail::UnsignedInteger auto value) : data_(checked(value)) {}
  /// Makes a double, including NaN and infinities.
  Value(std::floating_point auto value) : data_(static_cast<double>(value)) {}
  /// Makes text from a zero-terminated string, which must not be a null pointer.
  Value(const char* text) : data_(std::string(text)) {}
  /// Makes text. UTF-8 is checked when the text is stored, not here.
  Value(std::string text) : data_(std::move(text)) {}
  /// Makes text, by copying it.
  Value(std::string_view text) : data_(std::string(text)) {}
  /// Makes a list of any values.
  Value(List items) : data_(std::make_shared<List>(std::move(items))) {}
  /// Makes a dictionary. Keys are not checked here: a Record makes them unique.
  Value(Dict entries) : data_(std::make_shared<Dict>(std::move(entries))) {}
  /// Makes a dictionary: braces of pairs are always one; a list is written list(1, 2, 3).
  Value(std::initializer_list<DictEntry> entries);
  /// Makes a reference.
  Value(Reference reference) : data_(std::move(reference)) {}
  /// Makes a dictionary that shares `entries`, which must not change.
  explicit Value(std::shared_ptr<const Dict> entries) : data_(std::move(entries)) {}
  /// Makes a reference to an object such as a Checkpoint: the result of to_reference(object).
  template <detail::Referable T>
  Value(const T& object) : data_(to_reference(object)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }   ///< returns true for null
  bool is_bool() const { return std::holds_alternative<bool>(data_); }             ///< returns true for true or false
  bool is_integer() const { return std::holds_alternative<std::int64_t>(data_); }  ///< returns true for 64-bit integers
  bool is_double() const { return std::holds_alternative<double>(data_); }         ///< returns true for doubles
  bool is_number() const { return is_integer() || is_double(); }                   ///< returns true for both
  bool is_string() const { return std::holds_alternative<std::string>(data_); }    ///< returns true for text
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const List>>(data_); }  ///< true for lists
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const Dict>>(data_); }  ///< true for dicts

  /// Returns the value as a T: bool, any integer type, float, double, std::string, List, Dict, Checkpoint, Reference,
  /// Value or a std::vector of these. An integer is also a double; there are no other conversions. Throws
  /// InvalidArgument that shows the value and the requested type, also if an integer does not fit T.
  template <class T>
  T get() const;

  /// Returns the entries of a dictionary; throws InvalidArgument if the value is something else. The reference is valid
  /// as long as the value.
  const Dict& dict() const;
  /// Returns the entries of a dictionary as a shared pointer; throws like dict().
  const std::shared_ptr<const Dict>& shared_dict() const;
  /// Returns the items of a list; throws InvalidArgument if the value is something else. The reference is valid as long
  /// as the value.
  const List& items() const;

  /// Returns the alternatives, for std::visit.
  const Data& data() const { return data_; }

  /// Returns true if type and content are equal; NaN equals NaN, and the integer 1 does not equal the double 1.0.
  friend bool operator==(const Value& a, const Value& b);

 private:
  static std::int64_t checked(std::uint64_t value);
  bool as_bool() const;
  std::int64_t as_integer(std::int64_t lowest, std::int64_t highest) const;
  double as_double() const;
  const std::string& as_string() const;
  const Reference& as_reference() const;

  Data data_;
};

namespace detail {
// Accepts types that convert to a Value.
template <class T>
concept ValueSource = std::convertible_to<const T&, Value>;
}  // namespace detail

/// An entry of a dictionary as written in braces: {"lr", 0.1}.
struct DictEntry {
  /// Makes an entry of a key and a value.
  DictEntry(std::string key, Value value) : entry(std::move(key), std::move(value)) {}
  /// Makes an entry of a pair of key and value.
  template <class Key, class T>
    requires std::convertible_to<const Key&, std::string> && std::convertible_to<const T&, Value>
  DictEntry(const std::pair<Key, T>& pair) : entry(pair.first, pair.second) {}

  /// \cond mistakes, which do not compile
  template <class T>
    requires detail::TensorLike<T> && (!detail::ValueSource<T>)
  CADRE_MISTAKE("a tensor is no value of metrics or a config: write its number, as in loss.item<double>()")
  DictEntry(std::string key, const T& tensor);
  template <class T>
    requires detail::PointerLike<T> && (!detail::ValueSource<T>)
  CADRE_MISTAKE("a pointer is no value of metrics or a config: write what it points to, *pointer")
  DictEntry(std::string key, const T& pointer);
  template <class T>
    requires detail::OptionalLike<T> && (!detail::ValueSource<T>)
  CADRE_MISTAKE("an optional is no value of metrics or a config: write *value, or leave the entry out")
  DictEntry(std::string key, const T& optional);
  template <class T>
    requires std::convertible_to<const T&, std::string> && (!detail::ValueSource<T>)
  CADRE_MISTAKE("a path is no value of metrics or a config: write its text, path.string()")
  DictEntry(std::string key, const T& path);
  template <class T>
    requires detail::RangeLike<T> && (!std::convertible_to<const T&, std::string>) && (!detail::ValueSource<T>)
  CADRE_MISTAKE("a container is no value of metrics or a config: write cadre::List(items.begin(), items.end())")
  DictEntry(std::string key, const T& items);
  template <class T>
    requires(!detail::ValueSource<T> && !detail::TensorLike<T> && !detail::PointerLike<T> && !detail::OptionalLike<T> &&
             !detail::RangeLike<T> && !std::convertible_to<const T&, std::string>)
  CADRE_MISTAKE("a value of metrics or a config is a bool, a number, a text, list(...) or a dictionary in braces")
  DictEntry(std::string key, const T& value);
  /// \endcond

  std::pair<std::string, Value> entry;  ///< key and value
};

/// Returns the value of a key in a dictionary, without paths; nullptr if there is none. The pointer is valid until the
/// dictionary changes.
const Value* find_entry(const Dict& entries, std::string_view key);

/// Makes a list: list(1, 2, 3), list("relu", "tanh").
template <class... T>
  requires(std::constructible_from<Value, T &&> && ...)
Value list(T&&... items) {
  return Value(List{Value(std::forward<T>(items))...});
}

/// Returns the value as JSON text in the layout of Python's json.dumps, with the tokens NaN and Infinity. For messages
/// and files.
std::string to_json(const Value& value);

/// Named values in the order in which they were added. Config and Metrics are distinct types of this shape. Copying is
/// cheap: copies share their entries until one of them changes.
template <class Tag>
class Record {
 public:
  /// Makes a record without entries.
  Record() = default;
  /// Makes a record of entries; if a key occurs several times its last value is kept, at the place of its first.
  Record(std::initializer_list<DictEntry> entries);
  /// Makes a record of existing entries, in the same way.
  explicit Record(Dict entries);
  /// Makes a record that shares the entries of a dictionary. Throws InvalidArgument if the value is not a dictionary.
  explicit Record(const Value& value);

  /// \cond a mistake, which does not compile
  template <class T>
  CADRE_MISTAKE("metrics and configs have braces around each entry and around all: {{\"loss\", loss}}")
  Record(const char* key, const T& value);
  /// \endcond

  /// Returns the value at a key, or at a path through nested dictionaries ("optimizer/lr"); nullptr if there is none.
  /// The pointer is valid until the record changes.
  const Value* find(std::string_view key) const;
  /// Returns true if find() returns a value.
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// Returns the number at a key or path, an integer as a double; empty if there is no value or it is not a number.
  std::optional<double> number(std::string_view key) const;

  /// Returns the value at a key or path as a T (see Value::get). Throws NotFound with the existing keys, or
  /// InvalidArgument that names the key.
  template <class T>
  T get(std::string_view key) const {
    static_assert(detail::is_gettable<T>,
                  "a value is read as a bool, integer, float, double, std::string, std::vector of these, cadre::Dict, "
                  "cadre::List, cadre::Checkpoint or cadre::Value");
    return get_as<T>(key, at(key));
  }
  /// Does the same, but returns `fallback` if there is no such key. A value of another type is still an error.
  template <class T>
  T get(std::string_view key, T fallback) const {
    const Value* value = find(key);
    return value == nullptr ? std::move(fallback) : get_as<T>(key, *value);
  }
  /// Returns the value at a key or path. Throws NotFound with the existing keys. The reference is valid until the
  /// record changes.
  const Value& at(std::string_view key) const;

  /// Adds or replaces a top-level entry; the key is not a path. A replaced entry keeps its place.
  void set(std::string_view key, Value value);
  /// Removes a top-level entry; returns true if there was one.
  bool erase(std::string_view key);

  const Dict& dict() const { return entries_ ? *entries_ : no_entries(); }  ///< returns the top-level entries, in order
  /// Returns the entries as one value, which shares them.
  Value value() const { return entries_ ? Value(entries_) : Value(Dict{}); }
  Dict::const_iterator begin() const { return dict().begin(); }  ///< returns the first top-level entry
  Dict::const_iterator end() const { return dict().end(); }      ///< returns the position past the last one
  std::size_t size() const { return dict().size(); }             ///< returns the number of top-level entries
  bool empty() const { return dict().empty(); }                  ///< returns true if there are none
  /// Returns true if the entries are equal, in the same order.
  friend bool operator==(const Record& a, const Record& b) { return a.entries_ == b.entries_ || a.dict() == b.dict(); }

 private:
  template <class T>
  static T get_as(std::string_view key, const Value& value) {
    try {
      return value.template get<T>();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("key \"" + std::string(key) + "\": " + error.what());
    }
  }

  static const Dict& no_entries();
  Dict& own_entries();

  std::shared_ptr<const Dict> entries_;  // null: none
};

/// The hyper-parameters and constants of a trial.
using Config = Record<struct ConfigTag>;
/// The metrics of a report: measurements by name.
using Metrics = Record<struct MetricsTag>;

extern template class Record<ConfigTag>;
extern template class Record<MetricsTag>;

template <class T>
T Value::get() const {
  static_assert(detail::is_gettable<T>,
                "a value is read as a bool, integer, float, double, std::string, std::vector of these, cadre::Dict, "
                "cadre::List, cadre::Checkpoint or cadre::Value");
  if constexpr (std::same_as<T, Value>) {
    return *this;
  } else if constexpr (std::same_as<T, bool>) {
    return as_bool();
  } else if constexpr (detail::SignedInteger<T>) {
    return static_cast<T>(as_integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (detail::UnsignedInteger<T>) {
    constexpr auto highest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<T>(as_integer(0, static_cast<std::int64_t>(highest < most ? highest : most)));
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(as_double());
  } else if constexpr (std::same_as<T, std::string>) {
    return as_string();
  } else if constexpr (std::same_as<T, Reference>) {
    return as_reference();
  } else if constexpr (detail::MadeOfReference<T>) {
    return T::from_reference(as_reference());
  } else if constexpr (std::same_as<T, List>) {
    return items();
  } else if constexpr (std::same_as<T, Dict>) {
    return dict();
  } else if constexpr (detail::is_gettable<T>) {
    T result;
    for (const Value& item : items()) result.push_back(item.get<typename T::value_type>());
    return result;
  }
}

}  // namespace cadre
