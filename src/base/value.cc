#include "cadre/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/record.h"

namespace cadre {
namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class T>
bool same_content(const T& a, const T& b) {
  if constexpr (std::same_as<T, double>) {
    return same(a, b);
  } else if constexpr (requires { *a; }) {
    return a == b || *a == *b;  // lists and dictionaries are held by shared pointers
  } else {
    return a == b;
  }
}

[[noreturn]] void wrong_type(const Value& value, const char* wanted) {
  throw InvalidArgument("the value is " + to_json(value) + ", not " + wanted);
}

}  // namespace

namespace detail {

const Value* find_path(const Dict& entries, std::string_view path) {
  if (const Value* value = find_entry(entries, path)) return value;
  for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    const Value* nested = find_entry(entries, path.substr(0, slash));
    if (nested == nullptr || !nested->is_dict()) continue;
    if (const Value* value = find_path(nested->dict(), path.substr(slash + 1))) return value;
  }
  return nullptr;
}

Dict to_dict(std::initializer_list<DictEntry> entries) {
  Dict dict;
  dict.reserve(entries.size());
  for (const DictEntry& entry : entries) dict.push_back(entry.entry);
  return dict;
}

bool keys_are_unique(const Dict& entries) {
  constexpr std::size_t few = 32;  // below this comparing all pairs is faster
  if (entries.size() <= few) {
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      if (std::any_of(entries.begin(), entry, [&](const auto& other) { return other.first == entry->first; }))
        return false;
    }
    return true;
  }
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : entries) keys.emplace_back(key);
  std::ranges::sort(keys);
  return std::ranges::adjacent_find(keys) == keys.end();
}

}  // namespace detail

Value::Value(std::initializer_list<DictEntry> entries) : Value(detail::to_dict(entries)) {}

bool operator==(const Value& a, const Value& b) {
  if (a.data_.index() != b.data_.index()) return false;
  return std::visit(
      [&](const auto& content) { return same_content(content, std::get<std::decay_t<decltype(content)>>(b.data_)); },
      a.data_);
}

const Dict& Value::dict() const {
  if (!is_dict()) wrong_type(*this, "a dictionary");
  return *std::get<std::shared_ptr<const Dict>>(data_);
}

const std::shared_ptr<const Dict>& Value::shared_dict() const {
  if (!is_dict()) wrong_type(*this, "a dictionary");
  return std::get<std::shared_ptr<const Dict>>(data_);
}

const List& Value::items() const {
  if (!is_list()) wrong_type(*this, "a list");
  return *std::get<std::shared_ptr<const List>>(data_);
}

std::int64_t Value::checked(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw InvalidArgument(std::to_string(value) + " does not fit a 64-bit signed integer; pass it as text or a double");
  return static_cast<std::int64_t>(value);
}

bool Value::as_bool() const {
  if (!is_bool()) wrong_type(*this, "true or false");
  return std::get<bool>(data_);
}

std::int64_t Value::as_integer(std::int64_t lowest, std::int64_t highest) const {
  if (!is_integer()) wrong_type(*this, "an integer");
  const auto value = std::get<std::int64_t>(data_);
  if (value < lowest || value > highest)
    throw InvalidArgument("the value " + std::to_string(value) + " does not fit an integer type from " +
                          std::to_string(lowest) + " to " + std::to_string(highest));
  return value;
}

double Value::as_double() const {
  if (is_integer()) return static_cast<double>(std::get<std::int64_t>(data_));
  if (!is_double()) wrong_type(*this, "a number");
  return std::get<double>(data_);
}

const std::string& Value::as_string() const {
  if (!is_string()) wrong_type(*this, "text");
  return std::get<std::string>(data_);
}

const Reference& Value::as_reference() const {
  const auto* reference = std::get_if<Reference>(&data_);
  if (reference == nullptr) wrong_type(*this, "a reference to a checkpoint, dataset or object");
  return *reference;
}

const Value* find_entry(const Dict& entries, std::string_view key) {
  const auto entry = std::ranges::find(entries, key, &Dict::value_type::first);
  return entry == entries.end() ? nullptr : &entry->second;
}

template class Record<ConfigTag>;
template class Record<MetricsTag>;

}  // namespace cadre
