/// \file
/// Validation of checkpoints during training: a function gets a checkpoint and measures how good it is, in a process
/// and with resources of its own.
///
///     Metrics validate(const Checkpoint& checkpoint, const Config& config) {
///       ...
///       return {{"accuracy", right / total}};
///     }
///
///     train::Trainer trainer(fn<train_mnist>, {.validation = {.function = fn<validate>}});
///     ... train::report({{"loss", loss}}, checkpoint, {.validation = true});
///
/// Training continues meanwhile. The metrics that a validator returns are merged into those of its checkpoint, and the
/// checkpoints are ranked anew; a checkpoint whose validation is pending is kept. A validation is recorded once: if the
/// controller is killed, Trainer::restore restarts the unfinished ones. fit() returns when all are finished.
///
/// A validator whose function throws, crashes, runs out of memory or times out is retried up to
/// ValidationConfig::max_retries times: twice at once, then after pauses that double from 1 s up to a minute. After
/// that its checkpoint is marked as not validated. A validation never fails the training. A validator's output is in
/// the directory "validations" of the run.
///
/// Source: Ray Train's ValidationConfig (version 2.60), and the validate_fn of earlier ones.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cadre/checkpoint.h"
#include "cadre/function.h"
#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::train {

/// A duration in seconds; std::chrono::seconds(30) and the like convert.
using Seconds = std::chrono::duration<double>;

namespace detail {

using ValidatorPointer = Metrics (*)(const Checkpoint&, const Config&);
bool register_validator(std::string_view name, ValidatorPointer function);

template <class F>
concept ValidatingFunction = std::is_invocable_r_v<Metrics, F, const Checkpoint&, const Config&> ||
                             std::is_invocable_r_v<Metrics, F, const Checkpoint&>;

template <auto F>
Metrics call_validator(const Checkpoint& checkpoint, const Config& config) {
  if constexpr (std::invocable<decltype(F), const Checkpoint&, const Config&>) {
    return F(checkpoint, config);
  } else {
    return F(checkpoint);
  }
}

template <auto F>
struct ValidatorRegistration {
  static inline const bool done = register_validator(cadre::detail::function_name<F>(), &call_validator<F>);
};

}  // namespace detail

/// A function that validates checkpoints, by name.
struct Validator {
  Validator() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit Validator(std::string function) : name(std::move(function)) {}
  /// Names a function: Metrics f(const Checkpoint&, const Config&) or Metrics f(const Checkpoint&). It must return
  /// metrics that can be stored, as for train::report.
  template <auto F>
    requires detail::ValidatingFunction<decltype(F)>
  Validator(Function<F>) : name(cadre::detail::registered_name<F, detail::ValidatorRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::ValidatingFunction<decltype(F)>)
  CADRE_MISTAKE("a validator is Metrics f(const Checkpoint&, const Config&) or Metrics f(const Checkpoint&)")
  Validator(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string name = {};            ///< name of the function, without its namespaces; empty: none
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const Validator& other) const = default;  ///< compares the members
};

/// The order in which pending checkpoints are validated.
enum class ValidationOrder {
  oldest_first,  ///< all of them, in the order of their reports
  newest_first,  ///< the latest one; pending checkpoints of earlier reports are not validated any more
};

/// Validation of a run's checkpoints.
struct ValidationConfig {
  Validator function = {};   ///< validator for ReportOptions::validation; default: none
  Config config = {};        ///< config of the validator; each value at most 1 MiB: put() larger ones and refer to them
  Resources resources = {};  ///< for each validation; it waits until they are free besides those of the run's workers
  /// Resources for the workers of a train::Trainer inside the function. Each validation holds all of them, from its
  /// start on. Default: the function starts no workers; if it tries to, its validations fail without a retry.
  PlacementGroup workers = {};
  /// Time limit of one try, from its start; above 0. Default: no limit.
  std::optional<Seconds> timeout = {};
  /// Validations at a time; default: as many as there are resources for.
  std::optional<std::int64_t> max_in_flight = {};
  std::int64_t max_retries = 1;                           ///< retries of each validation, 0 or more; -1: unlimited
  ValidationOrder order = ValidationOrder::oldest_first;  ///< order of pending validations
};

/// Settings of one validation that override the ValidationConfig.
struct ValidationTask {
  Config config = {};                   ///< entries that are added to the ValidationConfig's, or replace them
  std::optional<Seconds> timeout = {};  ///< default: the ValidationConfig's
  /// Resources of the validator, besides those of ValidationConfig::workers; default: the ValidationConfig's.
  std::optional<Resources> resources = {};
};

/// A request to validate a reported checkpoint: true, false, or a ValidationTask.
class ValidationRequest {
 public:
  ValidationRequest(bool wanted = false) {  // NOLINT(google-explicit-constructor)
    if (wanted) task_.emplace();
  }  ///< validates with the ValidationConfig unchanged, or not at all
  ValidationRequest(ValidationTask task) : task_(std::move(task)) {}   ///< validates with this task
  const std::optional<ValidationTask>& task() const { return task_; }  ///< returns the task; empty: no validation

 private:
  std::optional<ValidationTask> task_;
};

}  // namespace cadre::train
