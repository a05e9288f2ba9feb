/// \file
/// Functions of the program, which are given by name: fn<f>.
#pragma once

#include <type_traits>

#include "cadre/detail/function_name.h"
#include "cadre/value.h"

namespace cadre {

/// The type of fn<F>. It holds nothing; types that name a function of the program have a constructor for it.
template <auto F>
struct Function {};

/// The function F of the program, for Cadre to call, in this process or in another one:
///
///     void train(const Config& config) { ... }
///     tune::Tuner tuner(fn<train>, {.param_space = {{"lr", tune::loguniform(1e-4, 1)}}});
///
/// F is a plain function, or a static one of a class. It is registered under its own name, without its namespaces, when
/// the program is loaded. The program's other processes find it by that name, and so do later runs that restore an
/// experiment, a training run or a dataset. A lambda and an instance of a template have no name by which they could be
/// found again, and do not compile; clang compiles an instance of a template, and using it throws InvalidArgument.
///
/// Two functions of one name are refused: by cadre::init if a Tuner, a Trainer or a validation is given them, otherwise
/// by what is given them. A Tuner, a Trainer and a validation share their names, so one function is given to only one
/// of these three.
///
/// These take a function of the program:
///   - tune::Tuner, tune::with_resources and all others that take a tune::Trainable: void f(const Config&), or with a
///     struct instead of the Config; it may also return a number or Metrics
///   - tune::with_resources, as its second argument: Resources f(const Config&) or PlacementGroup f(const Config&)
///   - entries of a search space, and mutations (tune::SampleFrom): Value f(), Value f(const Config&) or
///     Value f(const Config&, Random&)
///   - tune::PopulationBasedTraining::custom_explore_fn (tune::ExploreFunction): Config f(Config) or
///     Config f(Config, Random&)
///   - tune::RunConfig::stop and tune::any_of: bool f(const std::string& trial_id, const Metrics& result)
///   - train::Trainer (train::Loop): void f(), void f(const Config&), or with a struct instead of the Config; it may
///     also return what a Value is made from
///   - train::ValidationConfig::function and train::ReportOptions::validate (train::Validator):
///     Metrics f(const Checkpoint&) or Metrics f(const Checkpoint&, const Config&)
///   - data::Dataset::map_batches: Batch f(const Batch&) or Batch f(const Batch&, const Config&)
///   - data::Dataset::map: Row f(const Row&)
///   - data::Dataset::filter: bool f(const Row&)
template <auto F>
inline constexpr Function<F> fn = {};

/// \cond a mistake, which does not compile
template <auto F>
  requires(!detail::HasName<F>)
CADRE_MISTAKE("a lambda or an instance of a template has no name to find it by: write a plain function")
inline constexpr Function<F> fn<F> = {};
/// \endcond

/// A function that a host makes when it is needed, an interpreter of another language for example (cadre/host.h); not
/// set for a function of the program, which is found by its name.
struct HostFunction {
  Value value = {};                                      ///< what the host makes it from; null: not set
  bool is_set() const { return !value.is_null(); }       ///< returns true if it is a function of a host
  bool operator==(const HostFunction&) const = default;  ///< compares the values
};
/// \cond forms for cadre/stored.h
inline Value stored_form(const HostFunction& function) { return function.value; }
void read_stored(HostFunction& function, const auto& stored) { function.value = stored.value(); }
/// \endcond

namespace detail {
template <class T>
inline constexpr bool is_function = false;
template <auto F>
inline constexpr bool is_function<Function<F>> = true;
// Accepts what is no fn<f>, for overloads that say to write fn<f>. Constructors from Function<F> name the mistakes of
// the function itself. They are constructors, and not one conversion operator of Function, because a compiler shows the
// sentence of an unavailable constructor at the user's line.
template <class T>
concept NotFn = !is_function<std::remove_cvref_t<T>>;
}  // namespace detail

}  // namespace cadre
