/// \file
/// Learning-rate schedules whose state is saved with a checkpoint (cadre/torch/save_dict.h): those of libtorch have
/// none, so a continued run silently goes on with other rates.
///
/// Names, formulas and states are those of torch.optim.lr_scheduler (PyTorch 2.13): the same steps give the same rates,
/// bit for bit, and a state may go from C++ to Python and back. An epoch is a call of step(): after each pass over the
/// data, or after each batch.
///
/// A schedule is a value that says what the rates are; LRScheduler applies it to an optimizer.
///
///     optim::LRScheduler scheduler(optimizer, optim::SequentialLR{
///         .schedulers = {optim::LinearLR{.start_factor = 0.1, .total_iters = 5},
///                        optim::CosineAnnealingLR{.T_max = 95}},
///         .milestones = {5}});
///
/// Threads: any, but each scheduler and its optimizer in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/value.h"

namespace cadre::optim {

/// Multiplies the rate by `gamma` every `step_size` epochs.
struct StepLR {
  std::int64_t step_size = 1;  ///< at least 1
  double gamma = 0.1;          ///< finite
};
/// Multiplies the rate by `gamma` at each milestone; a milestone that is given twice counts twice.
struct MultiStepLR {
  std::vector<std::int64_t> milestones = {};  ///< epochs, in any order
  double gamma = 0.1;                         ///< finite
};
/// Multiplies the rate by `factor` until epoch `total_iters`.
struct ConstantLR {
  double factor = 1.0 / 3;       ///< above 0, at most 1
  std::int64_t total_iters = 5;  ///< 0 or more
};
/// Multiplies the rate by a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs: a warm-up.
struct LinearLR {
  double start_factor = 1.0 / 3;  ///< above 0, at most 1
  double end_factor = 1;          ///< 0 to 1
  std::int64_t total_iters = 5;   ///< at least 1
};
/// Multiplies the rate by `gamma` in each epoch.
struct ExponentialLR {
  double gamma = 0.9;  ///< no default in Python
};
/// Lets the rate go to 0 in `total_iters` epochs, as a polynomial.
struct PolynomialLR {
  std::int64_t total_iters = 5;  ///< at least 1
  double power = 1;              ///< finite; 1: a straight line
};
/// Lets the rate go to `eta_min` in `T_max` epochs, as half a period of a cosine, and back. Source: "SGDR: Stochastic
/// Gradient Descent with Warm Restarts", Loshchilov and Hutter.
struct CosineAnnealingLR {
  std::int64_t T_max = 1;  ///< at least 1
  double eta_min = 0;      ///< lowest rate; finite
};
/// Lets the rate go to `eta_min` as half a period of a cosine, and restarts: first after `T_0` epochs, then after
/// `T_mult` times as many as before. Source: the same.
struct CosineAnnealingWarmRestarts {
  std::int64_t T_0 = 1;     ///< at least 1
  std::int64_t T_mult = 1;  ///< at least 1
  double eta_min = 0;       ///< lowest rate; finite
};
/// Form of a phase of OneCycleLR.
enum class AnnealStrategy {
  cos,     ///< half a period of a cosine
  linear,  ///< a line
};
/// Lets the rate rise from `max_lr / div_factor` to `max_lr`, then fall to the first one divided by `final_div_factor`,
/// in `total_steps` steps; and the momentum the other way round. Call step() after each batch; LRScheduler sets the
/// first rate when it is made. Source: "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
/// Rates", Smith and Topin.
struct OneCycleLR {
  std::vector<double> max_lr = {};                       ///< one for all groups of parameters, or one for each
  std::int64_t total_steps = 0;                          ///< at least 1; one more call of step() than that throws
  double pct_start = 0.3;                                ///< share of the steps in which the rate rises, 0 to 1
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;  ///< form of both phases
  /// True: momentum (SGD, RMSprop) or the first beta (Adam, AdamW) goes from `max_momentum` to `base_momentum` and
  /// back.
  bool cycle_momentum = true;
  double base_momentum = 0.85;    ///< lowest momentum, for all groups
  double max_momentum = 0.95;     ///< highest momentum, for all groups
  double div_factor = 25;         ///< above 0
  double final_div_factor = 1e4;  ///< above 0
  bool three_phase = false;       ///< true: a third phase goes from the first rate to the last
};
/// Multiplies the first rate by a function of the epoch. The state does not include the function.
struct LambdaLR {
  std::function<double(std::int64_t epoch)> lr_lambda = {};  ///< must be set
};

class Schedule;

/// Takes a step of all schedules in each epoch: their factors multiply.
struct ChainedScheduler {
  std::vector<Schedule> schedulers;  ///< at least one
};
/// Takes one schedule after the other.
struct SequentialLR {
  std::vector<Schedule> schedulers;  ///< at least one; none that consists of others
  /// Epochs at which the next one begins, ascending: one less than there are schedules.
  std::vector<std::int64_t> milestones = {};
};

/// A schedule of any kind.
class Schedule {
 public:
  /// The kinds of schedules.
  using Kind = std::variant<StepLR, MultiStepLR, ConstantLR, LinearLR, ExponentialLR, PolynomialLR, CosineAnnealingLR,
                            CosineAnnealingWarmRestarts, OneCycleLR, LambdaLR, ChainedScheduler, SequentialLR>;

  /// Makes a schedule of the kind of `one`.
  template <class One>
    requires std::constructible_from<Kind, One>
  Schedule(One one) : kind_(std::make_shared<const Kind>(std::move(one))) {}

  /// Returns the schedule as its own type, for std::visit.
  const Kind& kind() const { return *kind_; }

 private:
  std::shared_ptr<const Kind> kind_;
};

namespace detail {
class RunningSchedule;
}

/// Sets an optimizer's learning rates by a schedule. Make one for each optimizer, before its state is loaded: the rates
/// that it has then are the first ones, and are changed as the schedule says for epoch 0.
class LRScheduler {
 public:
  /// `optimizer` must live as long as this object. Throws InvalidArgument that names all faults of the schedule; then
  /// the optimizer is unchanged.
  LRScheduler(torch::optim::Optimizer& optimizer, Schedule schedule);
  ~LRScheduler();
  LRScheduler(LRScheduler&&) noexcept;             ///< leaves an object that can only be destroyed
  LRScheduler& operator=(LRScheduler&&) noexcept;  ///< leaves an object that can only be destroyed

  /// Goes to the next epoch; call it after the optimizer's steps of the present one. Throws InvalidArgument after the
  /// last step of OneCycleLR, and exceptions of a LambdaLR's function; after an error nothing has changed.
  void step();
  /// Returns the rates of all groups of parameters.
  const std::vector<double>& get_last_lr() const;
  /// Returns the number of calls of step().
  std::int64_t last_epoch() const;

  /// Returns the state, with the schedule's numbers, as Python's state_dict() has it; a milestone that is given twice
  /// is in it twice.
  Dict state_dict() const;
  /// Takes a state over, with the schedule's numbers. The optimizer's rates are in its own state: load that, too.
  /// Throws InvalidArgument that names all faults of a state of another schedule, or of an optimizer with another
  /// number of groups; then nothing has changed.
  void load_state_dict(const Dict& state);

  /// Internal: checks a state, and returns what takes it over.
  std::function<void()> prepare(const Dict& state);
  /// Internal: returns the entries that the schedule has in a group of Python's optimizer.
  Dict entries_of_group(std::size_t group) const;
  /// Internal: the optimizer.
  const torch::optim::Optimizer& optimizer() const { return *optimizer_; }

 private:
  torch::optim::Optimizer* optimizer_;
  Schedule schedule_;
  std::shared_ptr<detail::RunningSchedule> running_;  // of this object alone
};

/// Unit of the threshold of ReduceLROnPlateau.
enum class ThresholdMode {
  rel,  ///< a fraction of the best value
  abs,  ///< an amount of the metric
};
/// Options of ReduceLROnPlateau, with Python's names.
struct ReduceLROnPlateauOptions {
  Mode mode = Mode::min;                              ///< min: smaller metrics are better; max: larger ones
  double factor = 0.1;                                ///< multiplies the rate; below 1
  std::int64_t patience = 10;                         ///< calls without a better metric that change nothing
  double threshold = 1e-4;                            ///< smallest change that is better
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< unit of `threshold`
  std::int64_t cooldown = 0;                          ///< calls after a change that do not count for `patience`
  std::vector<double> min_lr = {0};                   ///< smallest rate, one for all groups or one for each
  double eps = 1e-8;                                  ///< smallest change of the rate that is made
};

/// Reduces an optimizer's learning rates when a metric has stopped improving.
class ReduceLROnPlateau {
 public:
  /// `optimizer` must live as long as this object. Throws InvalidArgument that names all faults of the options.
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer, ReduceLROnPlateauOptions options = {});

  /// Takes the metric of an epoch, such as the loss of a validation. NaN is not better than anything.
  void step(double metric);
  /// Returns the rates of all groups of parameters.
  const std::vector<double>& get_last_lr() const { return last_lr_; }

  /// Returns the state, with the options, as Python's state_dict() has it.
  Dict state_dict() const;
  /// Takes a state over, with its options. Throws InvalidArgument that names all faults; then nothing has changed.
  void load_state_dict(const Dict& state);

  /// Internal: checks a state, and returns what takes it over.
  std::function<void()> prepare(const Dict& state);

 private:
  friend struct PlateauFields;
  bool is_better(double metric) const;

  torch::optim::Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_ = 0;
  std::int64_t last_epoch_ = 0;
  std::int64_t cooldown_counter_ = 0;
  std::int64_t num_bad_epochs_ = 0;
  std::vector<double> last_lr_ = {};
};

}  // namespace cadre::optim
