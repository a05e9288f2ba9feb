// The names of functions and classes, by which other processes and later runs find them.
#pragma once

#include <string>
#include <string_view>
#include <typeinfo>

namespace cadre::detail {

// Returns the name of a function as written in the source, without its namespaces; "(lambda" and the like for a lambda.
template <auto F>
constexpr std::string_view function_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // g++: "... [with auto F = f; ...]", clang: "... [F = &f]"
  const auto begin = text.find("F = ") + 4;
  text = text.substr(begin, text.find_first_of(";]", begin) - begin);
  if (text.starts_with('&')) text.remove_prefix(1);
  const auto colon = text.rfind("::");
  return colon == text.npos ? text : text.substr(colon + 2);
}

// Returns the name of a class, without its namespaces.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // g++: "... [with T = C; ...]", clang: "... [T = C]"
  const auto begin = text.find("T = ") + 4;
  text = text.substr(begin, text.find_first_of(";]", begin) - begin);
  const auto colon = text.rfind("::");
  return colon == text.npos ? text : text.substr(colon + 2);
}

// Returns true if `name` is an identifier. A lambda's name differs between compilers and builds, so it cannot be found
// again.
constexpr bool is_identifier(std::string_view name) { return !name.empty() && name.find_first_of("(<{ ") == name.npos; }

// Throws InvalidArgument if F of a Named<F> is an instance of a template. Clang omits the template's arguments from
// function_name, so two instances could not be told apart.
void refuse_template(const std::type_info& named);
template <auto F>
struct Named {};

template <auto F>
concept HasName = is_identifier(function_name<F>());

// Returns the name of F, which `Registration` registers when the program is loaded.
template <auto F, class Registration>
  requires HasName<F>
std::string registered_name() {
  static_cast<void>(Registration::done);
#if defined(__clang__)
#if __has_feature(cxx_rtti)
  refuse_template(typeid(Named<F>));
#endif
#endif
  return std::string(function_name<F>());
}

}  // namespace cadre::detail
