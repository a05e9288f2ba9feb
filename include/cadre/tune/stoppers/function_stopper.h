/// \file
/// Ends trials by a function of the program.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cadre/function.h"
#include "cadre/tune/stopper.h"
#include "cadre/value.h"

namespace cadre::tune {

namespace detail {
using StopPointer = bool (*)(const std::string& trial_id, const Metrics& result);
bool register_stop_function(std::string_view name, StopPointer function);

template <class F>
concept StopFunction = std::convertible_to<F, StopPointer>;

template <auto F>
struct StopRegistration {
  static inline const bool done = register_stop_function(cadre::detail::function_name<F>(), F);
};
/// \cond
#define CADRE_NO_STOP_FUNCTION \
  CADRE_MISTAKE("a stop function is bool f(const std::string& trial_id, const Metrics& result)")
/// \endcond
}  // namespace detail

/// Ends a trial when a function of the program returns true.
struct FunctionStopper {
  FunctionStopper() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit FunctionStopper(std::string name) : function(std::move(name)) {}
  /// Names a function: bool f(const std::string& trial_id, const Metrics& result). It is called in the process of the
  /// Tuner with every result that counts; a restore takes its answers from the store. If it throws, that trial fails.
  template <auto F>
    requires detail::StopFunction<decltype(F)>
  FunctionStopper(Function<F>) : function(cadre::detail::registered_name<F, detail::StopRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::StopFunction<decltype(F)>)
  CADRE_NO_STOP_FUNCTION FunctionStopper(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string function = {};        ///< its name
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h

  std::unique_ptr<Stopper> make(const StopperSetting& setting) const;  ///< returns the stopper
  void check(const TunerOptions& options, Faults& faults) const;       ///< finds what is wrong
  Stopper::Traits traits() const { return {.recorded = true}; }        ///< returns that its answers are stored
};

namespace detail {
extern template class HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>;
inline const bool knows_function_stopper = HeldOptionsOf<Stopper, StopperSetting, FunctionStopper>::known();
}  // namespace detail

}  // namespace cadre::tune
