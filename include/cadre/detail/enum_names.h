// The names of an enumeration's values, as they are written in the code.
//
// Source: the technique of magic_enum (Goncharov): the compiler spells a template argument in __PRETTY_FUNCTION__.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cadre::detail {

template <auto Value>
constexpr std::string_view enumerator_name() {
  // "... [Value = ns::E::name]", g++: "... [with auto Value = ns::E::name; ...]"
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("Value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.rfind(')');
  // "(ns::E)7": it has no name; "(anonymous namespace)::E::name" has one.
  if (bracket != text.npos && (colon == text.npos || colon < bracket)) return {};
  return text.substr(colon + 1);
}

template <class E, std::size_t I = 0>
constexpr std::size_t count_enumerators() {
  if constexpr (enumerator_name<static_cast<E>(I)>().empty()) {
    return I;
  } else {
    return count_enumerators<E, I + 1>();
  }
}

template <class E, std::size_t... I>
constexpr std::array<std::string_view, sizeof...(I)> enumerator_names(std::index_sequence<I...>) {
  return {enumerator_name<static_cast<E>(I)>()...};
}

// The names of values 0, 1, ... of an enumeration without gaps.
template <class E>
  requires std::is_enum_v<E>
inline constexpr auto kEnumNames = enumerator_names<E>(std::make_index_sequence<count_enumerators<E>()>());

template <class E>
constexpr std::string_view enum_name(E value) {
  static_assert(!kEnumNames<E>.empty(), "the first value of the enumeration is not 0, or the compiler hides its name");
  return kEnumNames<E>.at(static_cast<std::size_t>(value));
}

// Returns the value of that name; empty if there is none.
template <class E>
constexpr std::optional<E> enum_value(std::string_view name) {
  for (std::size_t i = 0; i < kEnumNames<E>.size(); ++i) {
    if (kEnumNames<E>[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Returns "leave, resume, restart".
template <class E>
std::string enum_names_text() {
  std::string text;
  for (const std::string_view name : kEnumNames<E>) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace cadre::detail
