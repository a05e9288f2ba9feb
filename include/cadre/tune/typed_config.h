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

#include "cadre/detail/config_struct.h"
#include "cadre/detail/member_names.h"
#include "cadre/tune/search_space.h"

namespace cadre::tune {

/// An entry of a search space whose key is a member's name: field<&Hyperparameters::lr>(uniform(0, 1)).
template <auto Member>
  requires std::is_member_object_pointer_v<decltype(Member)>
std::pair<std::string, SpaceEntry> field(SpaceEntry entry) {
  return {std::string(cadre::detail::member_pointer_name<Member>()), std::move(entry)};
}

/// A config as a struct with public members and no constructor. Members take what Value::get gives, and may be such
/// structs again, for nested configs; there are at most 24 of them, and none is an array. A member that the config does
/// not have keeps its default; keys that no member has are left out. Throws InvalidArgument that names the key where a
/// value is of another type than its member.
template <cadre::detail::PlainStruct T>
T from_config(const Config& config) {
  return cadre::detail::struct_from<T>(config);
}

}  // namespace cadre::tune
