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

inline constexpr std::size_t kMostMembers = 40;
inline constexpr std::size_t kMostConfigMembers = 24;  // of a struct of the user's

// A struct with constructors, so that its members cannot be counted: T::kMembers is their number. All are public.
template <class T>
concept StatesMembers = requires { requires T::kMembers > 0; };

// Returns the number of members, at most kMostMembers + 1; 0 if one of them cannot be made without arguments. Every
// other member takes an empty initializer, an array as a whole.
template <class T>
constexpr std::size_t count_members() {
  // clang-format off
#define CADRE_COUNT(n, ...) if constexpr (requires { T{__VA_ARGS__}; }) return n;
#define CADRE_5 {}, {}, {}, {}, {}
#define CADRE_10 CADRE_5, CADRE_5
#define CADRE_20 CADRE_10, CADRE_10
  if constexpr (StatesMembers<T>) return T::kMembers;
  else CADRE_COUNT(41, CADRE_20, CADRE_20, {})
  else CADRE_COUNT(40, CADRE_20, CADRE_20)
  else CADRE_COUNT(39, CADRE_20, CADRE_10, CADRE_5, {}, {}, {}, {})
  else CADRE_COUNT(38, CADRE_20, CADRE_10, CADRE_5, {}, {}, {})
  else CADRE_COUNT(37, CADRE_20, CADRE_10, CADRE_5, {}, {})
  else CADRE_COUNT(36, CADRE_20, CADRE_10, CADRE_5, {})
  else CADRE_COUNT(35, CADRE_20, CADRE_10, CADRE_5)
  else CADRE_COUNT(34, CADRE_20, CADRE_10, {}, {}, {}, {})
  else CADRE_COUNT(33, CADRE_20, CADRE_10, {}, {}, {})
  else CADRE_COUNT(32, CADRE_20, CADRE_10, {}, {})
  else CADRE_COUNT(31, CADRE_20, CADRE_10, {})
  else CADRE_COUNT(30, CADRE_20, CADRE_10)
  else CADRE_COUNT(29, CADRE_20, CADRE_5, {}, {}, {}, {})
  else CADRE_COUNT(28, CADRE_20, CADRE_5, {}, {}, {})
  else CADRE_COUNT(27, CADRE_20, CADRE_5, {}, {})
  else CADRE_COUNT(26, CADRE_20, CADRE_5, {})
  else CADRE_COUNT(25, CADRE_20, CADRE_5)
  else CADRE_COUNT(24, CADRE_20, {}, {}, {}, {})
  else CADRE_COUNT(23, CADRE_20, {}, {}, {})
  else CADRE_COUNT(22, CADRE_20, {}, {})
  else CADRE_COUNT(21, CADRE_20, {})
  else CADRE_COUNT(20, CADRE_20)
  else CADRE_COUNT(19, CADRE_10, CADRE_5, {}, {}, {}, {})
  else CADRE_COUNT(18, CADRE_10, CADRE_5, {}, {}, {})
  else CADRE_COUNT(17, CADRE_10, CADRE_5, {}, {})
  else CADRE_COUNT(16, CADRE_10, CADRE_5, {})
  else CADRE_COUNT(15, CADRE_10, CADRE_5)
  else CADRE_COUNT(14, CADRE_10, {}, {}, {}, {})
  else CADRE_COUNT(13, CADRE_10, {}, {}, {})
  else CADRE_COUNT(12, CADRE_10, {}, {})
  else CADRE_COUNT(11, CADRE_10, {})
  else CADRE_COUNT(10, CADRE_10)
  else CADRE_COUNT(9, CADRE_5, {}, {}, {}, {})
  else CADRE_COUNT(8, CADRE_5, {}, {}, {})
  else CADRE_COUNT(7, CADRE_5, {}, {})
  else CADRE_COUNT(6, CADRE_5, {})
  else CADRE_COUNT(5, CADRE_5)
  else CADRE_COUNT(4, {}, {}, {}, {})
  else CADRE_COUNT(3, {}, {}, {})
  else CADRE_COUNT(2, {}, {})
  else CADRE_COUNT(1, {})
  else return 0;
#undef CADRE_20
#undef CADRE_10
#undef CADRE_5
#undef CADRE_COUNT
  // clang-format on
}

// Marks the stand-in for a base in has_base(). A constructor that takes any class must refuse it: the struct that has
// such a member first would seem to have a base (g++).
struct BaseStandIn {};

template <class Derived>
struct AnyBaseOf : BaseStandIn {
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands in for a base
};

// Returns true if T has a base class.
template <class T>
constexpr bool has_base() {
  return requires { T{AnyBaseOf<T>{}}; };
}

// An aggregate without a base, whose members are public and can be made without arguments.
template <class T>
concept NamedAggregate = std::is_class_v<T> && std::is_aggregate_v<T> && count_members<T>() > 0 &&
                         count_members<T>() <= kMostMembers && !has_base<T>();

// A struct whose members can be reached by name.
template <class T>
concept NamedStruct = NamedAggregate<T> || (StatesMembers<T> && count_members<T>() <= kMostMembers);

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
  CADRE_TIE(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  CADRE_TIE(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  CADRE_TIE(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa)
  CADRE_TIE(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab)
  CADRE_TIE(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac)
  CADRE_TIE(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad)
  CADRE_TIE(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae)
  CADRE_TIE(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af)
  CADRE_TIE(33, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag)
  CADRE_TIE(34, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah)
  CADRE_TIE(35, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai)
  CADRE_TIE(36, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai, aj)
  CADRE_TIE(37, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai, aj, ak)
  CADRE_TIE(38, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai, aj, ak, al)
  CADRE_TIE(39, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai, aj, ak, al, am)
  CADRE_TIE(40, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
    ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an)
#undef CADRE_TIE
  // clang-format on
}

struct Anything {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands in for every member's type
};
struct AnythingToReferTo {
  template <class T>
  constexpr operator T&() const;  // NOLINT(google-explicit-constructor): stands in for what a reference refers to
};

// Returns true if a reference with an initializer follows the counted members: it takes no empty one.
template <class T, std::size_t... I>
constexpr bool has_reference(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything{})..., AnythingToReferTo{}}; };
}

template <class T>
constexpr bool has_array() {
  return []<class... Member>(std::type_identity<std::tuple<Member&...>>) {
    return (std::is_array_v<Member> || ...);
  }(std::type_identity<decltype(tie_members(std::declval<T&>()))>());
}

// A struct that a config can be: with public members only, no base, no array member and no reference member.
template <class T>
concept PlainStruct = NamedAggregate<T> && count_members<T>() <= kMostConfigMembers &&
                      !has_reference<T>(std::make_index_sequence<count_members<T>()>()) && !has_array<T>();

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
  // clang: "... [Member = {&imagined.object.lr}]", g++: "... (& imagined<{anonymous}::S>...::object.ns::S::lr)}; ..."
  return __PRETTY_FUNCTION__;
}

constexpr std::string_view member_name(std::string_view spelling) {
  const std::size_t end = spelling.find(")}");
  spelling = spelling.substr(0, end != spelling.npos ? end : spelling.rfind('}'));
  return spelling.substr(spelling.find_last_of(".:") + 1);
}

// A function and no variable: g++ writes variables that nobody uses, with references to what is never defined.
template <class T, std::size_t I>
consteval auto address_of_member() {
  return AddressOf{&std::get<I>(tie_members(imagined<T>.object))};
}

template <class T, std::size_t... I>
constexpr std::array<std::string_view, sizeof...(I)> names_of(std::index_sequence<I...>) {
  return {member_name(spelling<address_of_member<T, I>()>())...};
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// Returns the names of all members, in order.
template <NamedStruct T>
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
