/// \file
/// Configs as structs: the member names of a struct are the keys of a config.
///
///     struct Hyperparameters {
///       double lr = 0.1;
///       std::int64_t layers = 2;
///     };
///     void train(const Hyperparameters& config);   // for a Tuner or a Trainer, as one of a Config
///     .param_space = {tune::field<&Hyperparameters::lr>(tune::loguniform(1e-4, 1))}
///
/// Source of the technique: Boost.PFR (Polukhin); include/cadre/detail/member_names.h.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cadre/detail/member_names.h"
#include "cadre/error.h"
#include "cadre/value.h"

namespace cadre::detail {

template <class T>
inline constexpr bool is_nested_config = PlainStruct<T> && !std::same_as<T, Reference>;

struct NoMember {};

// Returns the first member that no config can have, of T or of a struct inside it; NoMember if there is none.
template <PlainStruct T, std::size_t I = 0>
constexpr auto unsupported_member() {
  using Members = decltype(tie_members(std::declval<T&>()));
  if constexpr (I == std::tuple_size_v<Members>) {
    return NoMember();
  } else {
    using Member = std::remove_reference_t<std::tuple_element_t<I, Members>>;
    if constexpr (is_nested_config<Member>) {
      if constexpr (!std::same_as<decltype(unsupported_member<Member>()), NoMember>) {
        return unsupported_member<Member>();
      } else {
        return unsupported_member<T, I + 1>();
      }
    } else if constexpr (!is_gettable<Member>) {
      return address_of_member<T, I>();
    } else {
      return unsupported_member<T, I + 1>();
    }
  }
}

// A struct that a config can be converted to.
template <class T>
concept TypedConfig = PlainStruct<T> && std::same_as<decltype(unsupported_member<T>()), NoMember>;

// A plain struct with a member that no config can have: a mistake, and the compiler names the member.
template <class T>
concept ConfigWithUnsupportedMember = PlainStruct<T> && !TypedConfig<T>;
/// \cond
#define CADRE_UNSUPPORTED_MEMBER                                                                              \
  CADRE_MISTAKE(                                                                                              \
      "this member of the struct is nothing that a config has: a bool, integer, float, double, std::string, " \
      "std::vector of these, or a struct")
/// \endcond

// For constructors, whose template arguments clang does not show.
template <auto Member>
CADRE_UNSUPPORTED_MEMBER std::string refuse_member();

// The types of a function's result and first argument; void: none.
template <class F>
struct Signature {
  using result = void;
  using argument = void;
};
template <class Result>
struct Signature<Result (*)()> {
  using result = std::remove_cvref_t<Result>;
  using argument = void;
};
template <class Result, class T, class... More>
struct Signature<Result (*)(T, More...)> {
  using result = std::remove_cvref_t<Result>;
  using argument = std::remove_cvref_t<T>;
};
template <class Result, class... Arguments>
struct Signature<Result (*)(Arguments...) noexcept> : Signature<Result (*)(Arguments...)> {};
template <class F>
using ConfigArgument = typename Signature<F>::argument;

template <class T>
void assign_members(T& object, const Dict& entries, const std::string& prefix);

template <class T>
void assign_member(T& member, const Value& value, const std::string& key) {
  const auto checked = [&](auto get) -> decltype(auto) {
    try {
      return get();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("key \"" + key + "\": " + error.what());
    }
  };
  if constexpr (is_nested_config<T>) {
    assign_members(member, checked([&]() -> const Dict& { return value.dict(); }), key + "/");
  } else {
    member = checked([&] { return value.get<T>(); });
  }
}

template <class T>
void assign_members(T& object, const Dict& entries, const std::string& prefix) {
  constexpr auto names = member_names<T>();
  const Config config(entries);
  std::size_t next = 0;
  const auto assign_next = [&](auto& member) {
    const std::string name(names[next++]);
    if (const Value* value = config.find(name)) assign_member(member, *value, prefix + name);
  };
  std::apply([&](auto&... members) { (assign_next(members), ...); }, tie_members(object));
}

// Returns what assign_member reads: the value of a variable that Value::get can fill, or of a struct.
template <class T>
Value to_value(const T& variable) {
  if constexpr (std::convertible_to<const T&, Value>) {
    return variable;
  } else if constexpr (is_nested_config<T>) {
    T members = variable;
    Dict entries;
    std::size_t next = 0;
    std::apply([&](const auto&... member) { (entries.emplace_back(member_names<T>()[next++], to_value(member)), ...); },
               tie_members(members));
    return entries;
  } else {
    List list;
    for (const auto& one : variable) list.push_back(to_value<typename T::value_type>(one));
    return list;
  }
}

}  // namespace cadre::detail

namespace cadre {

/// Returns a config as a struct with public members and no constructor. Members have the types that Value::get returns,
/// or are such structs themselves, for nested configs; there are at most 24 of them, and none is an array. A member
/// that the config does not have keeps its default; keys that no member has are ignored. Throws InvalidArgument that
/// names the key if a value has another type than its member.
template <detail::TypedConfig T>
T from_config(const Config& config) {
  T object{};
  detail::assign_members(object, config.dict(), "");
  return object;
}
/// \cond a mistake, which does not compile
template <detail::ConfigWithUnsupportedMember T, auto Member = detail::unsupported_member<T>()>
CADRE_UNSUPPORTED_MEMBER T from_config(const Config& config);
/// \endcond

/// Returns the config that from_config reads the same struct from: {.train_loop_config = to_config(settings)}. Throws
/// InvalidArgument for an unsigned number above the largest std::int64_t.
template <detail::TypedConfig T>
Config to_config(const T& object) {
  return Config(detail::to_value(object));
}
/// \cond a mistake, which does not compile
template <detail::ConfigWithUnsupportedMember T, auto Member = detail::unsupported_member<T>()>
CADRE_UNSUPPORTED_MEMBER Config to_config(const T& object);
/// \endcond

}  // namespace cadre

namespace cadre::detail {

// A description of the struct that a function takes as its config.
struct ConfigStruct {
  std::span<const std::string_view> members = {};  // top-level keys
  void (*check)(const Config&) =
      nullptr;  // throws InvalidArgument if a value has the wrong type; null: the function takes a Config
};

template <class T>
inline constexpr auto kMemberNames = member_names<T>();

template <TypedConfig T>
constexpr ConfigStruct config_struct() {
  return {kMemberNames<T>, [](const Config& config) { from_config<T>(config); }};
}

}  // namespace cadre::detail
