/// \file
/// Ends trials by a function of the program.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>

#include "cadre/detail/function_name.h"
#include "cadre/tune/stopper.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Ends a trial when a function of the program returns true; made by stop_function<f>().
struct FunctionStopper {
  std::string function = {};  ///< its name

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;  ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;       ///< finds what is wrong
  Stopper::Traits traits() const { return {.recorded = true}; }        ///< returns that its answers are stored
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>;
inline const bool knows_function_stopper = HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>::known();

using StopPointer = bool (*)(const std::string& trial_id, const Metrics& result);
bool register_stop_function(std::string_view name, StopPointer function);

template <auto F>
struct StopRegistration {
  static inline const bool done = register_stop_function(cadre::detail::function_name<F>(), F);
};
}  // namespace detail

/// Returns the function F as a stopper: bool f(const std::string& trial_id, const Metrics& result). F is called in the
/// process of the Tuner with every result that counts; a restore takes its answers from the store. If it throws, that
/// trial fails. F is found by its name; the Tuner refuses two functions of one name.
template <auto F>
  requires std::convertible_to<decltype(F), detail::StopPointer>
FunctionStopper stop_function() {
  return {cadre::detail::registered_name<F, detail::StopRegistration<F>>()};
}

/// \cond a mistake, which does not compile
template <auto F>
  requires(!std::convertible_to<decltype(F), detail::StopPointer>)
CADRE_MISTAKE("a stop function is bool f(const std::string& trial_id, const Metrics& result)")
FunctionStopper stop_function();
/// \endcond

}  // namespace cadre::tune
