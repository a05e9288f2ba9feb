#include "cadre/torch/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "cadre/faults.h"
#include "torch/running_schedule.h"
#include "torch/state_fields.h"

namespace cadre::optim {
namespace {

using torch::optim::OptimizerOptions;

// Returns the option that OneCycleLR lets go up and down; null: there is none.
template <class Set>
bool with_momentum(OptimizerOptions& options, const Set& set) {
  const auto set_beta1 = [&](auto& adam) {
    double beta1 = std::get<0>(adam.betas());
    set(beta1);
    adam.betas({beta1, std::get<1>(adam.betas())});
    return true;
  };
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) return set(sgd->momentum()), true;
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) return set(rmsprop->momentum()), true;
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) return set_beta1(*adam);
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) return set_beta1(*adamw);
  return false;
}

detail::Groups read_groups(torch::optim::Optimizer& optimizer) {
  detail::Groups groups;
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    detail::Group& own = groups.emplace_back();
    own.lr = own.initial_lr = group.options().get_lr();
    with_momentum(group.options(), [&](double& momentum) { own.momentum = momentum; });
  }
  return groups;
}

void write_groups(const detail::Groups& groups, torch::optim::Optimizer& optimizer) {
  std::size_t i = 0;
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    const detail::Group& own = groups.at(i++);
    group.options().set_lr(own.lr);
    if (own.momentum) with_momentum(group.options(), [&](double& momentum) { momentum = *own.momentum; });
  }
}

std::vector<double> rates_of(torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

}  // namespace

// ---- LRScheduler

LRScheduler::LRScheduler(torch::optim::Optimizer& optimizer, Schedule schedule)
    : optimizer_(&optimizer), schedule_(std::move(schedule)) {
  detail::Groups groups = read_groups(optimizer);
  const bool has_momentum =
      std::ranges::all_of(groups, [](const detail::Group& group) { return group.momentum.has_value(); });
  Faults faults;
  detail::check(schedule_, groups.size(), has_momentum, faults);
  faults.throw_as(c10::str(detail::name_of(schedule_), " cannot be made"));
  running_ = detail::make_running(schedule_);
  running_->begin(groups);
  write_groups(groups, optimizer);
}

LRScheduler::~LRScheduler() = default;
LRScheduler::LRScheduler(LRScheduler&&) noexcept = default;
LRScheduler& LRScheduler::operator=(LRScheduler&&) noexcept = default;

void LRScheduler::step() {
  detail::Groups groups = read_groups(*optimizer_);
  running_->step(groups);
  write_groups(groups, *optimizer_);
}

const std::vector<double>& LRScheduler::get_last_lr() const { return running_->last_lr(); }
std::int64_t LRScheduler::last_epoch() const { return running_->last_epoch(); }

Dict LRScheduler::state_dict() const { return detail::write_state(*running_); }

void LRScheduler::load_state_dict(const Dict& state) { prepare(state)(); }

std::function<void()> LRScheduler::prepare(const Dict& state) {
  auto loaded = std::shared_ptr<detail::RunningSchedule>(detail::make_running(schedule_));
  detail::Groups groups = read_groups(*optimizer_);
  loaded->begin(groups);
  detail::read_state(state, detail::name_of(schedule_), *loaded);
  return [this, loaded] { running_ = loaded; };
}

Dict LRScheduler::entries_of_group(std::size_t group) const { return running_->entries_of_group(group); }

// ---- ReduceLROnPlateau

// Goes through the members by the names of Python's state_dict().
struct PlateauFields final : detail::WithState {
  explicit PlateauFields(ReduceLROnPlateau& scheduler) : plateau(scheduler) {}

  void visit(detail::StateFields& fields) override {
    ReduceLROnPlateauOptions& options = plateau.options_;
    std::string mode = options.mode == Mode::min ? "min" : "max";
    std::string threshold_mode = options.threshold_mode == ThresholdMode::rel ? "rel" : "abs";
    double mode_worse = (options.mode == Mode::min ? 1 : -1) * std::numeric_limits<double>::infinity();
    Value default_min_lr = options.min_lr.front();
    fields.field("factor", options.factor);
    fields.field("default_min_lr", default_min_lr);
    fields.field("min_lrs", options.min_lr);
    fields.field("patience", options.patience);
    fields.field("cooldown", options.cooldown);
    fields.field("eps", options.eps);
    fields.field("last_epoch", plateau.last_epoch_);
    fields.field("_last_lr", plateau.last_lr_);
    fields.field("mode_worse", mode_worse);
    fields.field("mode", mode);
    fields.field("threshold", options.threshold);
    fields.field("threshold_mode", threshold_mode);
    fields.field("best", plateau.best_);
    fields.field("cooldown_counter", plateau.cooldown_counter_);
    fields.field("num_bad_epochs", plateau.num_bad_epochs_);
    if (options.patience < 0 || options.cooldown < 0 || plateau.last_epoch_ < 0 || plateau.cooldown_counter_ < 0 ||
        plateau.num_bad_epochs_ < 0)
      throw InvalidArgument("a number of epochs is negative");
    if ((mode != "min" && mode != "max") || (threshold_mode != "rel" && threshold_mode != "abs"))
      throw InvalidArgument(c10::str("mode is \"", mode, "\" and threshold_mode is \"", threshold_mode, "\""));
    options.mode = mode == "min" ? Mode::min : Mode::max;
    options.threshold_mode = threshold_mode == "rel" ? ThresholdMode::rel : ThresholdMode::abs;
  }

  ReduceLROnPlateau& plateau;
};

ReduceLROnPlateau::ReduceLROnPlateau(torch::optim::Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : optimizer_(&optimizer), options_(std::move(options)), last_lr_(rates_of(optimizer)) {
  const std::size_t groups = optimizer.param_groups().size();
  Faults faults;
  faults.unless(options_.factor < 1, "factor", c10::str("it is ", options_.factor, "; it must be below 1"));
  faults.unless(options_.min_lr.size() == 1 || options_.min_lr.size() == groups, "min_lr",
                c10::str("it has ", options_.min_lr.size(),
                         " rates; it must have one, or one for each of the optimizer's ", groups, " groups"));
  faults.throw_as("ReduceLROnPlateau cannot be made");
  if (options_.min_lr.size() == 1) options_.min_lr.resize(groups, options_.min_lr.front());
  best_ = (options_.mode == Mode::min ? 1 : -1) * std::numeric_limits<double>::infinity();
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold;
  if (options_.mode == Mode::min)
    return metric < (options_.threshold_mode == ThresholdMode::rel ? best_ * (1.0 - threshold) : best_ - threshold);
  return metric > (options_.threshold_mode == ThresholdMode::rel ? best_ * (threshold + 1.0) : best_ + threshold);
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    std::size_t i = 0;
    for (torch::optim::OptimizerParamGroup& group : optimizer_->param_groups()) {
      const double before = group.options().get_lr();
      const double reduced = std::max(before * options_.factor, options_.min_lr.at(i++));
      if (before - reduced > options_.eps) group.options().set_lr(reduced);
    }
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  last_lr_ = rates_of(*optimizer_);
}

Dict ReduceLROnPlateau::state_dict() const {
  ReduceLROnPlateau copy = *this;
  PlateauFields fields(copy);
  return detail::write_state(fields);
}

void ReduceLROnPlateau::load_state_dict(const Dict& state) { prepare(state)(); }

std::function<void()> ReduceLROnPlateau::prepare(const Dict& state) {
  ReduceLROnPlateau copy = *this;
  PlateauFields fields(copy);
  detail::read_state(state, "ReduceLROnPlateau", fields);
  return [this, copy] { *this = copy; };
}

}  // namespace cadre::optim
