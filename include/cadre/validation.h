/// \file
/// Validation of checkpoints beside training: a function that is given a checkpoint and measures how good it is, in a
/// process and with resources of its own.
///
///     Metrics validate(const Checkpoint& checkpoint, const Config& config) {
///       ...
///       return {{"accuracy", right / total}};
///     }
///
///     train::Trainer trainer(train::loop<train_mnist>(), {.validation = {.function = train::validator<validate>()}});
///     ... train::report({{"loss", loss}}, checkpoint, {.validation = true});
///
/// Training goes on meanwhile. What a validator returns is merged into the metrics of its checkpoint, and the
/// checkpoints are ranked anew; one that is still to be validated is kept. A validation is recorded once: when the
/// controller is killed, those that were not finished are begun again by Trainer::restore. fit() returns when all are
/// finished.
///
/// A validator whose function throws, crashes, runs out of memory or takes too long is tried again as often as
/// ValidationConfig::max_retries says: twice at once, then after pauses that double from 1 s up to a minute. Its
/// checkpoint is then marked as not validated. Training never fails from it. What it prints is in the directory
/// "validations" of the run.
///
/// Source: Ray Train's ValidationConfig (version 2.60), and the validate_fn of earlier ones.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cadre/checkpoint.h"
#include "cadre/detail/function_name.h"
#include "cadre/resources.h"
#include "cadre/value.h"

namespace cadre::train {

/// A time; std::chrono::seconds(30) and the like convert.
using Seconds = std::chrono::duration<double>;

/// Names a function that validates checkpoints. Made by validator<f>().
struct Validator {
  std::string name = {};                                    ///< of the function, without its namespaces; empty: none
  bool operator==(const Validator& other) const = default;  ///< the same function
};

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

/// The validator F: Metrics f(const Checkpoint&, const Config&) or f(const Checkpoint&). Found by its name, in every
/// process of the program. It must return metrics that can be stored, as those of train::report.
template <auto F>
  requires detail::ValidatingFunction<decltype(F)>
Validator validator() {
  return {cadre::detail::registered_name<F, detail::ValidatorRegistration<F>>()};
}

/// \cond a mistake, which does not compile
template <auto F>
  requires(!detail::ValidatingFunction<decltype(F)>)
CADRE_MISTAKE("a validator is Metrics f(const Checkpoint&, const Config&) or Metrics f(const Checkpoint&)")
Validator validator();
/// \endcond

/// Which of several checkpoints that wait is validated next.
enum class ValidationOrder {
  oldest_first,  ///< all of them, in the order of their reports
  newest_first,  ///< the latest one; those reported before it that wait are not validated any more
};

/// How a run validates its checkpoints.
struct ValidationConfig {
  Validator function = {};   ///< what validates where ReportOptions::validation says so; default: nothing
  Config config = {};        ///< what it gets; a value takes at most 1 MiB, larger ones are put() and referred to
  Resources resources = {};  ///< of each validation; it waits until they are free beside the run's workers
  /// What a train::Trainer in the function gets for its workers. Each validation has all of it, from its start on.
  /// Default: the function starts no workers; where it tries to, its validations fail without another try.
  PlacementGroup workers = {};
  /// How long one try may take from its start; above 0. Default: as long as it likes.
  std::optional<Seconds> timeout = {};
  std::optional<std::int64_t> max_in_flight = {};         ///< at a time; default: as many as there are resources for
  std::int64_t max_retries = 1;                           ///< of each validation; 0 or more, or -1: without limit
  ValidationOrder order = ValidationOrder::oldest_first;  ///< of those that wait
};

/// What one validation gets beside the ValidationConfig.
struct ValidationTask {
  Config config = {};                   ///< values that are added to the ValidationConfig's, or replace them
  std::optional<Seconds> timeout = {};  ///< default: the ValidationConfig's
};

/// Whether a reported checkpoint is validated: true, false, or a ValidationTask.
class ValidationRequest {
 public:
  ValidationRequest(bool wanted = false) {  // NOLINT(google-explicit-constructor)
    if (wanted) task_.emplace();
  }  ///< with the ValidationConfig as it is
  ValidationRequest(ValidationTask task) : task_(std::move(task)) {}   ///< with this task
  const std::optional<ValidationTask>& task() const { return task_; }  ///< empty: it is not

 private:
  std::optional<ValidationTask> task_;
};

}  // namespace cadre::train
