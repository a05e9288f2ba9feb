// Reflection of the members of a plain struct by name, without a list to maintain.
//
// Source: the technique of Boost.PFR (Polukhin): structured bindings count and reach the members, and the compiler
// spells their names in __PRETTY_FUNCTION__.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cadre::detail {

inline constexpr std::size_t kMostMembers = 24;

struct Anything {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands in for every member's type
};

template <class T, class... Members>
constexpr std::size_t count_members() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return count_members<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

struct AnyNumber {
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands in for numbers
};

// Returns true if an array of numbers begins at one of the counted members: it can be initialised by one number without
// braces and by two in braces. Without braces an array counts as many members as it has items.
template <class T, class... Before>
constexpr bool has_array() {
  if constexpr (requires { T{Before{}..., {AnyNumber{}, AnyNumber{}}}; } && requires { T{Before{}..., AnyNumber{}}; }) {
    return true;
  } else if constexpr (requires { T{Before{}..., Anything{}}; }) {
    return has_array<T, Before..., Anything>();
  } else {
    return false;
  }
}

struct AnythingToReferTo {
  template <class T>
  constexpr operator T&() const;  // NOLINT(google-explicit-constructor): stands in for what a reference refers to
};

// Returns true if a reference follows the counted members.
template <class T, std::size_t... I>
constexpr bool has_reference(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything{})..., AnythingToReferTo{}}; };
}

template <class Derived>
struct AnyBaseOf {
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands in for a base
};

// Returns true if T has a base class.
template <class T>
constexpr bool has_base() {
  return requires { T{AnyBaseOf<T>{}}; };
}

// A struct with public members only: no base, no array member and no reference member.
template <class T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T> && count_members<T>() > 0 &&
                      count_members<T>() <= kMostMembers && !has_array<T>() && !has_base<T>() &&
                      !has_reference<T>(std::make_index_sequence<count_members<T>()>());

// Returns references to all members, in order.
template <class T>
constexpr auto tie_members(T& object) {
  constexpr std::size_t members = count_members<std::remove_const_t<T>>();
  // clang-format off
#define CADRE_TIE(n, ...) else if constexpr (members == n) { auto& [__VA_ARGS__] = object; return std::tie(__VA_ARGS__); }
  if constexpr (members == 0) { return std::tuple(); }
  CADRE_TIE(1, a)
  CADRE_TIE(2, a, b)
  CADRE_TIE(3, a, b, c)
  CADRE_TIE(4, a, b, c, d)
  CADRE_TIE(5, a, b, c, d, e)
  CADRE_TIE(6, a, b, c, d, e, f)
  CADRE_TIE(7, a, b, c, d, e, f, g)
  CADRE_TIE(8, a, b, c, d, e, f, g, h)
  CADRE_TIE(9, a, b, c, d, e, f, g, h, i)
  CADRE_TIE(10, a, b, c, d, e, f, g, h, i, j)
  CADRE_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
  CADRE_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
  CADRE_TIE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  CADRE_TIE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  CADRE_TIE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  CADRE_TIE(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  CADRE_TIE(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  CADRE_TIE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  CADRE_TIE(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  CADRE_TIE(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  CADRE_TIE(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  CADRE_TIE(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  CADRE_TIE(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  CADRE_TIE(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
#undef CADRE_TIE
  // clang-format on
}

// Never defined and never read: only addresses inside it are named.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
struct Imagined {
  T object;
};
template <class T>
extern const Imagined<T> imagined;

template <class Member>
struct AddressOf {
  const Member* address;
};

template <AddressOf Member>
constexpr std::string_view spelling() {
  return __PRETTY_FUNCTION__;  // clang: "... [Member = {&imagined.object.lr}]", g++: "...::object.ns::S::lr)}; ..."
}

constexpr std::string_view member_name(std::string_view spelling) {
  spelling = spelling.substr(0, spelling.find('}'));
  if (spelling.ends_with(')')) spelling.remove_suffix(1);
  return spelling.substr(spelling.find_last_of(".:") + 1);
}

template <class T, std::size_t I>
inline constexpr AddressOf kMember{&std::get<I>(tie_members(imagined<T>.object))};

template <class T, std::size_t... I>
constexpr std::array<std::string_view, sizeof...(I)> names_of(std::index_sequence<I...>) {
  return {member_name(spelling<kMember<T, I>>())...};
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// Returns the names of all members, in order.
template <PlainStruct T>
constexpr auto member_names() {
  return names_of<T>(std::make_index_sequence<count_members<T>()>());
}

// Returns the name of a member by its pointer: "lr" for &Hyperparameters::lr.
template <auto Member>
constexpr std::string_view member_pointer_name() {
  std::string_view text =
      __PRETTY_FUNCTION__;  // "... [Member = &ns::S::lr]", g++: "... [with auto Member = &S::lr; ...]"
  text = text.substr(text.find("Member = ") + 9);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

}  // namespace cadre::detail
