/// \file
/// Learning-rate schedules whose state is saved with a checkpoint (cadre/torch/save_dict.h): those of libtorch have
/// none, so a run that is continued goes on with other rates, without a word.
///
/// Names, formulas and states are those of torch.optim.lr_scheduler (PyTorch 2.13): the same steps give the same rates,
/// bit for bit, and a state may go from C++ to Python and back. An epoch is a call of step(), whatever that is for the
/// program.
///
/// A schedule is a value that says what the rates are; LRScheduler applies it to an optimizer.
///
///     optim::LRScheduler scheduler(optimizer, optim::SequentialLR{
///         .schedulers = {optim::LinearLR{.start_factor = 0.1, .total_iters = 5}, optim::CosineAnnealingLR{.T_max =
///         95}}, .milestones = {5}});
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
  double gamma = 0.1;          ///< default: 0.1
};
/// Multiplies the rate by `gamma` at each milestone, as often as it is named.
struct MultiStepLR {
  std::vector<std::int64_t> milestones = {};  ///< epochs, in any order
  double gamma = 0.1;                         ///< default: 0.1
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
  double power = 1;              ///< default: a line
};
/// Lets the rate go to `eta_min` in `T_max` epochs, as half a period of a cosine, and back. Source: "SGDR: Stochastic
/// Gradient Descent with Warm Restarts", Loshchilov and Hutter.
struct CosineAnnealingLR {
  std::int64_t T_max = 1;  ///< at least 1
  double eta_min = 0;      ///< default: 0
};
/// Lets the rate go to `eta_min` as half a period of a cosine, and restarts: first after `T_0` epochs, then after
/// `T_mult` times as many as before. Source: the same.
struct CosineAnnealingWarmRestarts {
  std::int64_t T_0 = 1;     ///< at least 1
  std::int64_t T_mult = 1;  ///< at least 1
  double eta_min = 0;       ///< default: 0
};
/// Form of a phase of OneCycleLR.
enum class AnnealStrategy {
  cos,     ///< half a period of a cosine
  linear,  ///< a line
};
/// Lets the rate rise from `max_lr / div_factor` to `max_lr`, then go to that beginning divided by `final_div_factor`,
/// in `total_steps` steps; and the momentum the other way round. step() is called after each batch; the first rate is
/// there from the beginning. Source: "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
/// Rates", Smith and Topin.
struct OneCycleLR {
  std::vector<double> max_lr = {};                       ///< one for all groups of parameters, or one for each
  std::int64_t total_steps = 0;                          ///< at least 1; one more call of step() than that throws
  double pct_start = 0.3;                                ///< share of the steps in which the rate rises, 0 to 1
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;  ///< form of both phases
  /// True: momentum (SGD, RMSprop) or the first beta (Adam, AdamW) goes from `max_momentum` to `base_momentum` and
  /// back.
  bool cycle_momentum = true;
  double base_momentum = 0.85;    ///< for all groups
  double max_momentum = 0.95;     ///< for all groups
  double div_factor = 25;         ///< above 0
  double final_div_factor = 1e4;  ///< above 0
  bool three_phase = false;       ///< true: a third phase goes from the first rate to the last
};
/// Multiplies the first rate by a function of the epoch. The function is no part of the state.
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

/// Any of them.
class Schedule {
 public:
  /// The kinds.
  using Kind = std::variant<StepLR, MultiStepLR, ConstantLR, LinearLR, ExponentialLR, PolynomialLR, CosineAnnealingLR,
                            CosineAnnealingWarmRestarts, OneCycleLR, LambdaLR, ChainedScheduler, SequentialLR>;

  /// Makes one of each kind of schedule.
  template <class One>
    requires std::constructible_from<Kind, One>
  Schedule(One one) : kind_(std::make_shared<const Kind>(std::move(one))) {}

  /// Returns which one it is, for std::visit.
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
  LRScheduler(LRScheduler&&) noexcept;             ///< the other one can only be destroyed then
  LRScheduler& operator=(LRScheduler&&) noexcept;  ///< the other one can only be destroyed then

  /// Goes to the next epoch; call it after those steps of the optimizer that are for the present one. Throws
  /// InvalidArgument after the last step of OneCycleLR.
  void step();
  /// Returns the rates of all groups of parameters.
  const std::vector<double>& get_last_lr() const;
  /// Returns the number of calls of step().
  std::int64_t last_epoch() const;

  /// Returns the state, with the schedule's numbers, as Python's state_dict() has it; a milestone that is named twice
  /// is there twice.
  Dict state_dict() const;
  /// Takes a state over, with the schedule's numbers. The rates of the optimizer are its own state's: load that, too.
  /// Throws InvalidArgument that names all faults of a state of another schedule, or of an optimizer with another
  /// number of groups; then nothing has changed.
  void load_state_dict(const Dict& state);

  /// Internal: checks a state, and returns what takes it over.
  std::function<void()> prepare(const Dict& state);
  /// Internal: returns what Python has of the schedule in a group of the optimizer's.
  Dict entries_of_group(std::size_t group) const;
  /// Internal: the optimizer.
  const torch::optim::Optimizer& optimizer() const { return *optimizer_; }

 private:
  torch::optim::Optimizer* optimizer_;
  Schedule schedule_;
  std::shared_ptr<detail::RunningSchedule> running_;  // of this object alone
};

/// Says how ReduceLROnPlateau counts its threshold.
enum class ThresholdMode {
  rel,  ///< by a part of the best value
  abs,  ///< by an amount
};
/// Options of ReduceLROnPlateau, with Python's names.
struct ReduceLROnPlateauOptions {
  Mode mode = Mode::min;                              ///< small or large metrics are good
  double factor = 0.1;                                ///< by which the rate is multiplied; below 1
  std::int64_t patience = 10;                         ///< calls without a better metric that change nothing
  double threshold = 1e-4;                            ///< smallest change that is better
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< how `threshold` counts
  std::int64_t cooldown = 0;                          ///< calls after a change of the rate that do not count as worse
  std::vector<double> min_lr = {0};                   ///< smallest rate, of all groups or of each
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
