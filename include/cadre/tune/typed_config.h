/// \file
/// Configs as structs: the names of a config's keys are those of a struct's members.
///
///     struct Hyperparameters {
///       double lr = 0.1;
///       std::int64_t layers = 2;
///     };
///     void train(const Hyperparameters& config);   // a trainable like one that takes a Config
///     .param_space = {field<&Hyperparameters::lr>(loguniform(1e-4, 1)), field<&Hyperparameters::layers>(randint(1,
///     5))}
///
/// Source of the technique: Boost.PFR (Polukhin); include/cadre/detail/member_names.h.
#pragma once

#include <concepts>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cadre/detail/member_names.h"
#include "cadre/tune/search_space.h"

namespace cadre::tune {

/// An entry of a search space whose key is a member's name: field<&Hyperparameters::lr>(uniform(0, 1)).
template <auto Member>
  requires std::is_member_object_pointer_v<decltype(Member)>
std::pair<std::string, SpaceEntry> field(SpaceEntry entry) {
  return {std::string(cadre::detail::member_pointer_name<Member>()), std::move(entry)};
}

namespace detail {

template <class T>
void assign_members(T& object, const Dict& entries, const std::string& prefix);

template <class T>
void assign(T& member, const Value& value, const std::string& key) {
  const auto checked = [&](auto get) -> decltype(auto) {
    try {
      return get();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("key \"" + key + "\": " + error.what());
    }
  };
  if constexpr (cadre::detail::PlainStruct<T> && !std::same_as<T, Reference>) {
    assign_members(member, checked([&]() -> const Dict& { return value.dict(); }), key + "/");
  } else {
    member = checked([&] { return value.get<T>(); });
  }
}

template <class T>
inline constexpr bool is_config_member =
    cadre::detail::is_gettable<T> || (cadre::detail::PlainStruct<T> && !std::same_as<T, Reference>);

// A mistake, which does not compile: the compiler names the member.
template <class T, cadre::detail::AddressOf Member>
  requires is_config_member<T>
constexpr void check_member() {}
template <class T, cadre::detail::AddressOf Member>
  requires(!is_config_member<T>)
CADRE_MISTAKE(
    "this member of the struct is nothing that a config has: a bool, integer, float, double, std::string, std::vector "
    "of these, or a struct")
constexpr void check_member();

template <class T, std::size_t... I>
constexpr void check_members(std::index_sequence<I...>) {
  using Members = decltype(cadre::detail::tie_members(std::declval<T&>()));
  (check_member<std::remove_reference_t<std::tuple_element_t<I, Members>>, cadre::detail::kMember<T, I>>(), ...);
}

template <class T>
void assign_members(T& object, const Dict& entries, const std::string& prefix) {
  check_members<T>(std::make_index_sequence<std::tuple_size_v<decltype(cadre::detail::tie_members(object))>>());
  constexpr auto names = cadre::detail::member_names<T>();
  const Config config(entries);
  std::size_t next = 0;
  const auto assign_next = [&](auto& member) {
    const std::string name(names[next++]);
    if (const Value* value = config.find(name)) assign(member, *value, prefix + name);
  };
  std::apply([&](auto&... members) { (assign_next(members), ...); }, cadre::detail::tie_members(object));
}

}  // namespace detail

/// A config as a struct with public members and no constructor. Members take what Value::get gives, and may be such
/// structs again, for nested configs; there are at most 24 of them, and none is an array. A member that the config does
/// not have keeps its default; keys that no member has are left out. Throws InvalidArgument that names the key where a
/// value is of another type than its member.
template <cadre::detail::PlainStruct T>
T from_config(const Config& config) {
  T object{};
  detail::assign_members(object, config.dict(), "");
  return object;
}

}  // namespace cadre::tune
