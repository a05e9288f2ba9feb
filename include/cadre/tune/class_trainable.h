/// \file
/// Trainable classes, whose training Cadre drives step by step.
///
/// The methods are called in a worker, in one thread, in this order: the constructor; setup; load_checkpoint, if there
/// is a checkpoint to continue from; then step, repeatedly, with save_checkpoint after each step whose checkpoint is
/// wanted; at the end cleanup and the destructor. An exception that leaves a method fails the trial.
///
/// Source: Ray Tune's class API (tune.Trainable).
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <type_traits>

#include "cadre/detail/function_name.h"
#include "cadre/tune/trainable.h"
#include "cadre/value.h"

namespace cadre::tune {

/// Base class of trainable classes, which must have a default constructor. tune::get_context() returns information
/// about the trial.
///
/// A checkpoint of the last result is written
///   - every CheckpointConfig::checkpoint_frequency iterations;
///   - when a result has SHOULD_CHECKPOINT set to true, by step() or by a callback's on_trial_result;
///   - when the trial ends, unless CheckpointConfig::checkpoint_at_end is false;
///   - before the trial is paused, if its process cannot be parked (see Parking);
///   - when Population Based Training may let other trials continue from it, or a replay is about to change the config.
///
/// A class therefore needs no interval of its own to be trained with Population Based Training.
class ClassTrainable {
 public:
  virtual ~ClassTrainable() = default;

  /// Creates the model and all other state from the trial's config. Called once, first. Default: does nothing.
  virtual void setup(const Config& config);
  /// Trains one iteration and returns its result: metrics as for tune::report(), with the same keys added. `done` set
  /// to true ends the trial.
  virtual Metrics step() = 0;
  /// Writes the state for load_checkpoint() into `directory`, which exists and is empty. Writing nothing fails the
  /// trial. If it throws OutOfSpace, it is called again each second, with another directory, until there is space.
  virtual void save_checkpoint(const std::filesystem::path& directory);
  /// Restores the state that save_checkpoint() of this class has written, perhaps in another trial. Called after
  /// setup() or reset_config(), so values from the config are already set: a class that reads them from the checkpoint
  /// sets them once more.
  virtual void load_checkpoint(const std::filesystem::path& directory);
  /// Switches to another config without a new process; load_checkpoint() follows. Returns false if it cannot: the
  /// process then ends as after a stop, and a new one begins with setup(). Default: returns false.
  virtual bool reset_config(const Config& config);
  /// Releases what the destructor does not. Called once before the end, also after a failure of another method, but not
  /// if the process is killed. Default: does nothing.
  virtual void cleanup() {}

  const Config& get_config() const { return config_; }          ///< returns the trial's current config, from setup() on
  const Config& get_parameters() const { return parameters_; }  ///< returns the constants of with_parameters
  /// Returns the training_iteration of the last result; inside step() that is one less than that of its result.
  /// Continues from that of the checkpoint.
  std::int64_t training_iteration() const { return training_iteration_; }

 private:
  friend class ClassRun;

  Config config_ = {};
  Config parameters_ = {};
  std::int64_t training_iteration_ = 0;
};

namespace detail {

using ClassFactory = std::unique_ptr<ClassTrainable> (*)();

bool register_class(std::string_view name, ClassFactory make, TrainableMethods methods);

template <class T>
struct ClassRegistration {
  // The class of a member pointer is the one that declares the member: T if T overrides it, or a base of T between the
  // two.
  static constexpr TrainableMethods methods{
      .is_class = true,
      .save_checkpoint = !std::is_same_v<decltype(&T::save_checkpoint), decltype(&ClassTrainable::save_checkpoint)>,
      .load_checkpoint = !std::is_same_v<decltype(&T::load_checkpoint), decltype(&ClassTrainable::load_checkpoint)>,
      .reset_config = !std::is_same_v<decltype(&T::reset_config), decltype(&ClassTrainable::reset_config)>};
  static inline const bool done =
      register_class(cadre::detail::type_name<T>(), [] { return std::unique_ptr<ClassTrainable>(new T); }, methods);
};

}  // namespace detail

/// Returns the class T as a trainable, registered under its own name when the program is loaded, like a function. Its
/// methods must not be overloaded or private.
template <std::derived_from<ClassTrainable> T>
  requires std::default_initializable<T>
Trainable trainable() {
  static_cast<void>(detail::ClassRegistration<T>::done);
  Trainable trainable(std::string(cadre::detail::type_name<T>()));
  trainable.methods = detail::ClassRegistration<T>::methods;
  return trainable;
}
/// \cond mistakes, which do not compile
template <class T>
  requires(!std::derived_from<T, ClassTrainable>)
CADRE_MISTAKE("a trainable class derives publicly from tune::ClassTrainable")
Trainable trainable();
template <std::derived_from<ClassTrainable> T>
  requires std::is_abstract_v<T>
CADRE_MISTAKE("a trainable class has the method Metrics step() override, and is not abstract")
Trainable trainable();
template <std::derived_from<ClassTrainable> T>
  requires(!std::is_abstract_v<T> && !std::default_initializable<T>)
CADRE_MISTAKE("a trainable class has a public default constructor; setup(config) gets the trial's config")
Trainable trainable();
/// \endcond

}  // namespace cadre::tune
