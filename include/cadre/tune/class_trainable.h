/// \file
/// Trainables as classes: for training that Cadre drives, step by step.
///
/// The methods are called in a worker, in one thread, in this order: the constructor; setup; load_checkpoint, where
/// there is one to continue from; then step, again and again, with save_checkpoint after those steps whose checkpoint
/// is wanted; at the end cleanup and the destructor. An exception that leaves a method fails the trial.
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

/// What a trainable class derives from; it has a default constructor. tune::get_context() tells of the trial.
///
/// A checkpoint of the last result is written
///   - every CheckpointConfig::checkpoint_frequency iterations;
///   - when a result has SHOULD_CHECKPOINT as true, be it from step() or set by a callback's on_trial_result;
///   - when the trial is done, unless CheckpointConfig::checkpoint_at_end is false;
///   - before the trial is paused in a way in which its process cannot stay (see Parking);
///   - when Population Based Training may let others continue from it, or a replay is about to change the config.
///
/// So a class needs no interval of its own to be trained with Population Based Training.
class ClassTrainable {
 public:
  virtual ~ClassTrainable() = default;

  /// Makes the model and what else is needed, from the trial's config. Called once, first. Default: nothing.
  virtual void setup(const Config& config);
  /// Trains one iteration and returns its result: what tune::report() takes, with the same keys added. `done` as true
  /// ends the trial.
  virtual Metrics step() = 0;
  /// Writes what load_checkpoint() needs into `directory`, which exists and is empty. Writing nothing fails the trial.
  /// When it throws OutOfSpace, it is called again each second, with another directory, until there is space.
  virtual void save_checkpoint(const std::filesystem::path& directory);
  /// Takes over what save_checkpoint() of this class has written, perhaps in another trial. Called after setup() or
  /// reset_config(), so values that the config has are already set: a class that reads them from the checkpoint sets
  /// them once more.
  virtual void load_checkpoint(const std::filesystem::path& directory);
  /// Takes another config without a new process; load_checkpoint() follows. Returns whether it could: if not, the
  /// process ends as after a stop, and another one begins with setup(). Default: it cannot.
  virtual bool reset_config(const Config& config);
  /// Lets go of what the destructor does not. Called once before the end, also after a failure of another method; not
  /// when the process is killed. Default: nothing.
  virtual void cleanup() {}

  const Config& get_config() const { return config_; }          ///< the trial's present one, from setup() on
  const Config& get_parameters() const { return parameters_; }  ///< what with_parameters has given to all trials
  /// Of the last result; in step() that is one less than the one it makes. Goes on from that of the checkpoint.
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
  // A pointer to a member is of the class that has it: T where T overrides it, or a base of T between the two.
  static constexpr TrainableMethods methods{
      .is_class = true,
      .save_checkpoint = !std::is_same_v<decltype(&T::save_checkpoint), decltype(&ClassTrainable::save_checkpoint)>,
      .load_checkpoint = !std::is_same_v<decltype(&T::load_checkpoint), decltype(&ClassTrainable::load_checkpoint)>,
      .reset_config = !std::is_same_v<decltype(&T::reset_config), decltype(&ClassTrainable::reset_config)>};
  static inline const bool done =
      register_class(cadre::detail::type_name<T>(), [] { return std::unique_ptr<ClassTrainable>(new T); }, methods);
};

}  // namespace detail

/// The class T as a trainable, registered under its own name when the program is loaded, like a function. Its methods
/// may not be overloaded or private.
template <std::derived_from<ClassTrainable> T>
  requires std::default_initializable<T>
Trainable trainable() {
  static_cast<void>(detail::ClassRegistration<T>::done);
  return {.name = std::string(cadre::detail::type_name<T>()), .methods = detail::ClassRegistration<T>::methods};
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
