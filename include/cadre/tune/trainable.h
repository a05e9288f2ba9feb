// Training functions by name.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::tune {

// Names a training function and what each of its trials needs. Made by trainable<f>().
struct Trainable {
  std::string name;
  Resources resources = {};  // of one trial
};

namespace detail {

using TrainingFunction = void (*)(const Config&);

// The name of a function as it stands in the source, without its namespaces; "(lambda" and the like for a lambda.
template <auto F>
constexpr std::string_view function_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // g++: "... [with auto F = f; ...]", clang: "... [F = &f]"
  const auto begin = text.find("F = ") + 4;
  text = text.substr(begin, text.find_first_of(";]", begin) - begin);
  if (text.starts_with('&')) text.remove_prefix(1);
  const auto colon = text.rfind("::");
  return colon == text.npos ? text : text.substr(colon + 2);
}

bool register_trainable(std::string_view name, TrainingFunction function);

template <auto F>
struct Registration {
  static inline const bool done = register_trainable(function_name<F>(), TrainingFunction(F));
};

// A lambda's name differs between compilers and builds, so it cannot be found again.
constexpr bool is_identifier(std::string_view name) { return !name.empty() && name.find_first_of("(<{ ") == name.npos; }

}  // namespace detail

// The function F as a trainable. It is registered under its own name when the program is loaded, so that a worker, and
// a later run that restores an experiment, find it by that name. Two functions of one name are refused by cadre::init.
// F is called once in each of a trial's workers, with the trial's config; it reports through tune::report and ends by
// returning. An exception that leaves it fails the trial.
template <auto F>
  requires std::invocable<decltype(F), const Config&>
Trainable trainable() {
  static_assert(detail::is_identifier(detail::function_name<F>()),
                "a lambda has no name to find it by: name the function");
  static_cast<void>(detail::Registration<F>::done);
  return {std::string(detail::function_name<F>())};
}

// The same trainable with other resources for each trial. Default without it: one CPU.
Trainable with_resources(Trainable trainable, Resources resources);

}  // namespace cadre::tune
