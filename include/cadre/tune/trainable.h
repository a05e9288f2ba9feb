/// \file
/// Training functions, which are found by name. cadre/tune/class_trainable.h has trainable classes.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/function.h"
#include "cadre/resources.h"
#include "cadre/tune/program.h"
#include "cadre/typed_config.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Optional methods of a trainable class; all false for a function.
struct TrainableMethods {
  bool is_class = false;                                     ///< true if it is a ClassTrainable
  bool save_checkpoint = false;                              ///< true if it overrides save_checkpoint()
  bool load_checkpoint = false;                              ///< true if it overrides load_checkpoint()
  bool reset_config = false;                                 ///< true if it overrides reset_config()
  bool operator==(const TrainableMethods&) const = default;  ///< compares all fields
};

namespace detail {

using TrainingPointer = void (*)(const Config&);

// The arguments of a training function.
struct ConfigType {
  cadre::detail::ConfigStruct config = {};  // the struct that it takes instead of a Config
  bool takes_parameters = false;            // true if it takes parameters as its second argument
};

bool register_trainable(std::string_view name, TrainingPointer function, ConfigType type);
const Config& parameters_of_trial();  // returns the parameters of the trial that this worker runs
void report_returned(const Metrics& metrics);
void report_returned_number(const Value& number);  // reports under the name of the experiment's metric

using cadre::detail::ConfigArgument;

// A function with the first argument `First`, alone or followed by parameters.
template <class F, class First>
concept TakesFirst = std::invocable<F, First> || std::invocable<F, First, const Config&>;

template <class F>
concept TakesConfig = TakesFirst<F, const Config&>;
template <class F>
concept TakesStruct = cadre::detail::PlainStruct<ConfigArgument<F>> && TakesFirst<F, const ConfigArgument<F>&>;
template <class F>
concept TakesTypedConfig = TakesStruct<F> && cadre::detail::TypedConfig<ConfigArgument<F>>;

template <class F>
inline constexpr bool kTakesParameters = false;
template <class Result, class T>
inline constexpr bool kTakesParameters<Result (*)(T, const Config&)> = true;
template <class Result, class T>
inline constexpr bool kTakesParameters<Result (*)(T, const Config&) noexcept> = true;

template <class Returned>
inline constexpr bool kIsNumber = std::is_arithmetic_v<Returned> && !std::same_as<Returned, bool>;
template <class Returned>
inline constexpr bool kIsReport = kIsNumber<Returned> || std::same_as<Returned, Metrics>;

template <class F>
concept ReturnsReport = std::is_void_v<typename cadre::detail::Signature<F>::result> ||
                        kIsReport<typename cadre::detail::Signature<F>::result>;

template <class Returned>
void report_if_any(const auto& call) {
  if constexpr (kIsNumber<Returned>) {
    report_returned_number(Value(call()));
  } else if constexpr (std::same_as<Returned, Metrics>) {
    report_returned(call());
  } else {
    call();
  }
}

template <auto F>
void call_with(const auto& config) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (kTakesParameters<decltype(F)>) {
      return F(config, parameters_of_trial());
    } else {
      return F(config);
    }
  };
  report_if_any<std::remove_cvref_t<decltype(call())>>(call);
}

template <auto F>
struct Registration {
  static bool add() {
    constexpr std::string_view name = cadre::detail::function_name<F>();
    constexpr bool takes_parameters = kTakesParameters<decltype(F)>;
    if constexpr (TakesConfig<decltype(F)>) {
      return register_trainable(name, [](const Config& config) { call_with<F>(config); },
                                {.takes_parameters = takes_parameters});
    } else {
      using T = ConfigArgument<decltype(F)>;
      return register_trainable(name, [](const Config& config) { call_with<F>(from_config<T>(config)); },
                                {cadre::detail::config_struct<T>(), takes_parameters});
    }
  }
  static inline const bool done = add();
};

}  // namespace detail

/// A function that a Trainable is made from: of a Config, or of a plain struct that is made from one; an optional
/// second argument, `const Config& parameters`, gets the constants of with_parameters.
template <class F>
concept TrainingFunction = detail::TakesConfig<F> || detail::TakesTypedConfig<F>;

namespace detail {
using ResourcePointer = PlacementGroup (*)(const Config&);
bool register_resource_function(std::string_view name, ResourcePointer function);

template <class F>
concept FunctionOfResources =
    std::is_invocable_r_v<PlacementGroup, F, const Config&> || std::is_invocable_r_v<Resources, F, const Config&>;

template <auto F>
struct ResourceRegistration {
  static PlacementGroup call(const Config& config) {
    if constexpr (std::is_invocable_r_v<PlacementGroup, decltype(F), const Config&>) {
      return F(config);
    } else {
      return {.bundles = {F(config)}};
    }
  }
  static inline const bool done = register_resource_function(cadre::detail::function_name<F>(), &call);
};
}  // namespace detail

/// A function of the program that returns a trial's resources by its config. Empty: none.
struct ResourceFunction {
  ResourceFunction() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit ResourceFunction(std::string name) : function(std::move(name)) {}
  /// Names a function: Resources f(const Config&) or PlacementGroup f(const Config&). It is called in the process of
  /// the Tuner when a trial is made, and when it explores another config; a restore takes its answers from the store.
  /// If it throws or asks for resources that this machine does not have, that trial fails; in an exploit the trial
  /// keeps its former resources instead.
  template <auto F>
    requires detail::FunctionOfResources<decltype(F)>
  ResourceFunction(Function<F>) : function(cadre::detail::registered_name<F, detail::ResourceRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::FunctionOfResources<decltype(F)>)
  CADRE_MISTAKE("a resource function is Resources f(const Config&) or PlacementGroup f(const Config&)")
  ResourceFunction(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string function = {};        ///< its name
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const ResourceFunction&) const = default;  ///< compares the members
};

/// A training function or class, by name, and the resources of each of its trials.
struct Trainable {
  Trainable() = default;  ///< names no function
  /// Names a function or class by text; the program must give it as fn<f> or trainable<C>() somewhere.
  explicit Trainable(std::string function) : name(std::move(function)) {}
  /// Runs a program (cadre/tune/program.h) in each of a trial's workers. Its name is that of the first word of the
  /// command which is a file: "train" for {"python3", "train.py"}. Relative paths of the program and its working
  /// directory are made absolute.
  Trainable(Program program);
  /// Names a function: void f(const Config&); see TrainingFunction for a struct and for parameters. It is called once
  /// in each of a trial's workers, with the trial's config or with a struct that is made from it
  /// (cadre/typed_config.h); it reports through tune::report and ends by returning. Metrics that it returns are one
  /// more report, the last one; so is a number, under the name of the TuneConfig's metric, or
  /// "_metric" if there is none. An exception that leaves it fails the trial.
  template <auto F>
    requires TrainingFunction<decltype(F)> && detail::ReturnsReport<decltype(F)>
  Trainable(Function<F>) : name(cadre::detail::registered_name<F, detail::Registration<F>>()) {}
  /// \cond mistakes, which do not compile
  template <auto F>
    requires(!TrainingFunction<decltype(F)> && std::is_member_function_pointer_v<decltype(F)>)
  CADRE_MISTAKE(
      "a method needs an object: write a class that derives from tune::ClassTrainable, and tune::trainable<C>()")
  Trainable(Function<F>);
  template <auto F>
    requires(!TrainingFunction<decltype(F)> && !detail::TakesStruct<decltype(F)> &&
             !std::is_member_function_pointer_v<decltype(F)>)
  CADRE_MISTAKE(
      "a training function takes a const Config&, or a struct with public members only: 1 to 24 of them, no "
      "constructor, no base, no array and no reference")
  Trainable(Function<F>);
  template <auto F>
    requires(!TrainingFunction<decltype(F)> && detail::TakesStruct<decltype(F)>)
  Trainable(Function<F>)
      : name(cadre::detail::refuse_member<cadre::detail::unsupported_member<detail::ConfigArgument<decltype(F)>>()>()) {
  }
  template <auto F>
    requires TrainingFunction<decltype(F)> && (!detail::ReturnsReport<decltype(F)>)
  CADRE_MISTAKE("a training function returns nothing, a number or cadre::Metrics, which is its last report")
  Trainable(Function<F>);
  static constexpr std::size_t kMembers = 9;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string name = {};          ///< name of the function or class, without its namespaces
  Resources resources = {};       ///< resources of one trial; for a placement group, its first bundle; default: one CPU
  Config parameters = {};         ///< constants of with_parameters for all trials; default: none
  TrainableMethods methods = {};  ///< methods that trainable() has detected in a class
  std::vector<Resources> more_bundles = {};              ///< further bundles of a placement group, after the first
  PlacementStrategy strategy = PlacementStrategy::pack;  ///< strategy of a placement group
  ResourceFunction resource_function = {};               ///< if set, replaces resources, more_bundles and strategy
  HostFunction host_function = {};  ///< set if it is a function or class of a host, not of the program: cadre/host.h
  Program program = {};             ///< set if it is a program of its own
};

/// Returns the trainable with these resources for each trial. Default without a call: one CPU. The Tuner checks the
/// amounts, and fit() refuses resources that this machine does not have.
Trainable with_resources(Trainable trainable, Resources resources);
/// Does the same with bundles. A trial's GPUs, over all bundles, are a share of one GPU, or whole GPUs.
Trainable with_resources(Trainable trainable, PlacementGroup group);
/// Does the same with resources that depend on each trial's config.
Trainable with_resources(Trainable trainable, ResourceFunction function);
/// \cond mistakes, which do not compile
template <class Number>
  requires std::is_arithmetic_v<Number>
CADRE_MISTAKE("resources have names: write tune::with_resources(trainable, {.cpus = 2})")
Trainable with_resources(Trainable trainable, Number cpus);
template <class F>
  requires(cadre::detail::FunctionLike<std::remove_cvref_t<F>>)
CADRE_MISTAKE("a function is given by its name: write tune::with_resources(trainable, fn<f>)")
Trainable with_resources(Trainable trainable, F&& function);
/// \endcond

/// Returns the trainable with constants for all of its trials, which the function takes as its second argument and
/// which are not part of any config: they do not appear in results or result files, and no scheduler changes them. They
/// are stored with the experiment, so that a restore has them. Large values belong in the object store
/// (cadre/object.h), with their reference here:
///
///     void train(const Config& config, const Config& parameters) { Object data = get_object(parameters, "data"); ... }
///     tune::with_parameters(fn<train>, {{"data", put(pixels)}, {"epochs", 10}})
///
/// The Tuner refuses parameters for a function of one argument, missing parameters for a function of two, a value over
/// 1 MiB, and more than 16 MiB in total. A second call replaces the parameters of the first. A class gets them from
/// get_parameters().
Trainable with_parameters(Trainable trainable, Config parameters);

}  // namespace cadre::tune
