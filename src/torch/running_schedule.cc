#include "torch/running_schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "base/overload.h"
#include "cadre/error.h"

namespace cadre::optim::detail {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

void check_count(const char* name, std::int64_t count) {
  if (count < -1 || count > kMostSteps) throw InvalidArgument(c10::str(name, " is ", count));
}

std::vector<double> rates_of(const Groups& groups) {
  std::vector<double> rates;
  for (const Group& group : groups) rates.push_back(group.lr);
  return rates;
}

bool is_composite(const Schedule& schedule) {
  return std::holds_alternative<ChainedScheduler>(schedule.kind()) ||
         std::holds_alternative<SequentialLR>(schedule.kind());
}

// ---- Checks

struct Checker {
  std::size_t groups;
  bool has_momentum;
  Faults& faults;

  void positive(const char* name, std::int64_t value) const {
    faults.unless(value >= 1, name, c10::str("it is ", value, "; it must be at least 1"));
  }
  void finite(const char* name, double value) const {
    faults.unless(std::isfinite(value), name, c10::str("it is ", value, "; it must be a number"));
  }
  void between(const char* name, double value, double least, double most, bool with_least = true) const {
    faults.unless(value <= most && (with_least ? value >= least : value > least), name,
                  c10::str("it is ", value, "; it must be ", with_least ? "at least" : "above", " ", least,
                           " and at most ", most));
  }

  void operator()(const StepLR& schedule) const {
    positive("step_size", schedule.step_size);
    finite("gamma", schedule.gamma);
  }
  void operator()(const MultiStepLR& schedule) const { finite("gamma", schedule.gamma); }
  void operator()(const ConstantLR& schedule) const {
    between("factor", schedule.factor, 0, 1, false);
    faults.unless(schedule.total_iters >= 0, "total_iters",
                  c10::str("it is ", schedule.total_iters, "; it must be 0 or more"));
  }
  void operator()(const LinearLR& schedule) const {
    between("start_factor", schedule.start_factor, 0, 1, false);
    between("end_factor", schedule.end_factor, 0, 1);
    positive("total_iters", schedule.total_iters);
  }
  void operator()(const ExponentialLR& schedule) const { finite("gamma", schedule.gamma); }
  void operator()(const PolynomialLR& schedule) const {
    positive("total_iters", schedule.total_iters);
    finite("power", schedule.power);
  }
  void operator()(const CosineAnnealingLR& schedule) const {
    positive("T_max", schedule.T_max);
    finite("eta_min", schedule.eta_min);
  }
  void operator()(const CosineAnnealingWarmRestarts& schedule) const {
    positive("T_0", schedule.T_0);
    positive("T_mult", schedule.T_mult);
    finite("eta_min", schedule.eta_min);
  }
  void operator()(const OneCycleLR& schedule) const {
    faults.unless(schedule.max_lr.size() == 1 || schedule.max_lr.size() == groups, "max_lr",
                  c10::str("it has ", schedule.max_lr.size(),
                           " rates; it must have one, or one for each of the optimizer's ", groups, " groups"));
    positive("total_steps", schedule.total_steps);
    between("pct_start", schedule.pct_start, 0, 1);
    faults.unless(schedule.div_factor > 0, "div_factor",
                  c10::str("it is ", schedule.div_factor, "; it must be above 0"));
    faults.unless(schedule.final_div_factor > 0, "final_div_factor",
                  c10::str("it is ", schedule.final_div_factor, "; it must be above 0"));
    faults.unless(!schedule.cycle_momentum || has_momentum, "cycle_momentum",
                  "it is true, and this optimizer has neither a momentum nor betas; set it to false");
  }
  void operator()(const LambdaLR& schedule) const {
    faults.unless(schedule.lr_lambda != nullptr, "lr_lambda", "it is no function");
  }
  void operator()(const ChainedScheduler& schedule) const { parts(schedule.schedulers); }
  void operator()(const SequentialLR& schedule) const {
    parts(schedule.schedulers);
    faults.unless(std::ranges::none_of(schedule.schedulers, is_composite), "schedulers",
                  "one of them consists of others; put a SequentialLR into a ChainedScheduler instead");
    faults.unless(schedule.milestones.size() + 1 == schedule.schedulers.size(), "milestones",
                  c10::str("there are ", schedule.milestones.size(), " for ", schedule.schedulers.size(),
                           " schedules; there must be one less"));
    faults.unless(std::ranges::is_sorted(schedule.milestones), "milestones", "they must ascend");
  }
  void parts(const std::vector<Schedule>& schedules) const {
    faults.unless(!schedules.empty(), "schedulers", "there is none");
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      Faults of_part;
      check(schedules[i], groups, has_momentum, of_part);
      faults.add_all(c10::str("schedulers[", i, "]"), of_part);
    }
  }
};

// ---- Schedules

// A schedule that does not consist of others.
class SimpleSchedule : public RunningSchedule {
 public:
  void begin(Groups& groups) override {
    base_lrs_.clear();
    for (const Group& group : groups) base_lrs_.push_back(group.initial_lr);
    last_epoch_ = -1;
    initial_step(groups);
  }
  void step(Groups& groups) override {
    ++step_count_;
    ++last_epoch_;
    try {
      set(groups, next(groups));
    } catch (...) {
      --step_count_;
      --last_epoch_;
      throw;
    }
  }
  void undo() override { --last_epoch_; }
  void initial_step(Groups& groups) override {
    step_count_ = 0;
    is_initial_ = true;
    step(groups);
    is_initial_ = false;
  }
  void begin_late(Groups& groups) override {
    const std::int64_t before = std::exchange(last_epoch_, 0);
    try {
      set(groups, first(groups));
    } catch (...) {
      last_epoch_ = before;
      throw;
    }
  }
  std::int64_t last_epoch() const override { return last_epoch_; }
  Dict entries_of_group(std::size_t group) const override { return {{"initial_lr", base_lrs_.at(group)}}; }

  void visit(StateFields& fields) override {
    visit_own(fields);
    fields.field("base_lrs", base_lrs_);
    fields.field("last_epoch", last_epoch_);
    fields.field("_step_count", step_count_);
    fields.field("_last_lr", last_lr_);
    check_count("last_epoch", last_epoch_);
    check_count("_step_count", step_count_);
    check_numbers();
  }

 protected:
  // Returns the rates of last_epoch(), made of those before it.
  virtual std::vector<double> next(Groups& groups) = 0;
  // Returns those of epoch 0 in a schedule that begins late.
  virtual std::vector<double> first(Groups& groups) { return next(groups); }
  virtual void visit_own(StateFields& fields) = 0;

  void set(Groups& groups, const std::vector<double>& rates) {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].lr = rates[i];
    last_lr_ = rates;
  }
  // Throws for numbers of a state that no schedule has.
  virtual void check_numbers() const = 0;
  template <class Change>
  static std::vector<double> each(const Groups& groups, const Change& change) {
    std::vector<double> rates;
    for (const Group& group : groups) rates.push_back(change(group.lr));
    return rates;
  }
  template <class Make>
  std::vector<double> of_base(const Make& make) const {
    std::vector<double> rates;
    for (const double base : base_lrs_) rates.push_back(make(base));
    return rates;
  }

  std::vector<double> base_lrs_ = {};
  std::int64_t last_epoch_ = -1;
  std::int64_t step_count_ = 0;
  bool is_initial_ = false;
};

// One of them, with its numbers.
template <class Own>
class ScheduleOf : public SimpleSchedule {
 public:
  explicit ScheduleOf(Own own) : own_(std::move(own)) {}

 protected:
  void check_numbers() const override {
    Faults faults;
    Checker{base_lrs_.size(), true, faults}(own_);
    faults.throw_as("its numbers are none of a schedule");
  }

  Own own_;
};

class RunningStepLR final : public ScheduleOf<StepLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (last_epoch_ == 0 || last_epoch_ % own_.step_size != 0) return rates_of(groups);
    return each(groups, [&](double lr) { return lr * own_.gamma; });
  }
  std::vector<double> first(Groups&) override { return base_lrs_; }
  void visit_own(StateFields& fields) override {
    fields.field("step_size", own_.step_size);
    fields.field("gamma", own_.gamma);
  }
};

class RunningMultiStepLR final : public ScheduleOf<MultiStepLR> {
 public:
  explicit RunningMultiStepLR(MultiStepLR schedule) : ScheduleOf(std::move(schedule)) {
    std::ranges::sort(own_.milestones);
  }

 private:
  std::vector<double> next(Groups& groups) override {
    const auto times = std::ranges::count(own_.milestones, last_epoch_);
    if (times == 0) return rates_of(groups);
    return each(groups, [&](double lr) { return lr * std::pow(own_.gamma, static_cast<double>(times)); });
  }
  std::vector<double> first(Groups&) override {
    const auto passed = std::ranges::upper_bound(own_.milestones, 0) - own_.milestones.begin();
    return of_base([&](double base) { return base * std::pow(own_.gamma, static_cast<double>(passed)); });
  }
  void visit_own(StateFields& fields) override {
    fields.field("milestones", own_.milestones);
    std::ranges::sort(own_.milestones);  // Python has them in any order
    fields.field("gamma", own_.gamma);
  }
};

class RunningConstantLR final : public ScheduleOf<ConstantLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (last_epoch_ == 0) return each(groups, [&](double lr) { return lr * own_.factor; });
    if (last_epoch_ != own_.total_iters) return rates_of(groups);
    return each(groups, [&](double lr) { return lr * (1.0 / own_.factor); });
  }
  std::vector<double> first(Groups&) override {
    const double ended = own_.total_iters <= 0 ? 1 : 0;
    return of_base([&](double base) { return base * (own_.factor + ended * (1 - own_.factor)); });
  }
  void visit_own(StateFields& fields) override {
    fields.field("factor", own_.factor);
    fields.field("total_iters", own_.total_iters);
  }
};

class RunningLinearLR final : public ScheduleOf<LinearLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (last_epoch_ == 0) return each(groups, [&](double lr) { return lr * own_.start_factor; });
    if (is_initial_ || last_epoch_ > own_.total_iters) return rates_of(groups);
    const double range = own_.end_factor - own_.start_factor;
    const auto total = static_cast<double>(own_.total_iters);
    const double factor = 1.0 + range / (total * own_.start_factor + static_cast<double>(last_epoch_ - 1) * range);
    return each(groups, [&](double lr) { return lr * factor; });
  }
  std::vector<double> first(Groups&) override {
    return of_base([&](double base) { return base * own_.start_factor; });
  }
  void visit_own(StateFields& fields) override {
    fields.field("start_factor", own_.start_factor);
    fields.field("end_factor", own_.end_factor);
    fields.field("total_iters", own_.total_iters);
  }
};

class RunningExponentialLR final : public ScheduleOf<ExponentialLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (is_initial_) return rates_of(groups);
    return each(groups, [&](double lr) { return lr * own_.gamma; });
  }
  std::vector<double> first(Groups&) override { return base_lrs_; }
  void visit_own(StateFields& fields) override { fields.field("gamma", own_.gamma); }
};

class RunningPolynomialLR final : public ScheduleOf<PolynomialLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (is_initial_ || last_epoch_ > own_.total_iters) return rates_of(groups);
    const auto total = static_cast<double>(own_.total_iters);
    const auto epoch = static_cast<double>(last_epoch_);
    const double factor = std::pow((1.0 - epoch / total) / (1.0 - (epoch - 1) / total), own_.power);
    return each(groups, [&](double lr) { return lr * factor; });
  }
  std::vector<double> first(Groups&) override { return base_lrs_; }
  void visit_own(StateFields& fields) override {
    fields.field("total_iters", own_.total_iters);
    fields.field("power", own_.power);
  }
};

class RunningCosineAnnealingLR final : public ScheduleOf<CosineAnnealingLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups& groups) override {
    if (is_initial_) return rates_of(groups);
    const auto t_max = static_cast<double>(own_.T_max);
    const auto epoch = static_cast<double>(last_epoch_);
    if (step_count_ == 1 && last_epoch_ > 0)
      return of_base(
          [&](double base) { return own_.eta_min + (base - own_.eta_min) * (1 + std::cos(epoch * kPi / t_max)) / 2; });
    if ((last_epoch_ - 1 - own_.T_max) % (2 * own_.T_max) == 0) {
      std::vector<double> rates;
      for (std::size_t i = 0; i < groups.size(); ++i)
        rates.push_back(groups[i].lr + (base_lrs_[i] - own_.eta_min) * (1 - std::cos(kPi / t_max)) / 2);
      return rates;
    }
    return each(groups, [&](double lr) {
      return (1 + std::cos(kPi * epoch / t_max)) / (1 + std::cos(kPi * (epoch - 1) / t_max)) * (lr - own_.eta_min) +
             own_.eta_min;
    });
  }
  std::vector<double> first(Groups&) override {
    return of_base([&](double base) { return own_.eta_min + (base - own_.eta_min) * (1 + std::cos(kPi * 0.0)) / 2; });
  }
  void visit_own(StateFields& fields) override {
    fields.field("T_max", own_.T_max);
    fields.field("eta_min", own_.eta_min);
  }
};

class RunningWarmRestarts final : public ScheduleOf<CosineAnnealingWarmRestarts> {
 public:
  explicit RunningWarmRestarts(const CosineAnnealingWarmRestarts& schedule)
      : ScheduleOf(schedule), t_i_(schedule.T_0) {}

  void step(Groups& groups) override {
    if (last_epoch_ < 0) {
      t_i_ = own_.T_0;
      t_cur_ = 0;
      last_epoch_ = 0;
    } else {
      ++last_epoch_;
      if (++t_cur_ >= t_i_) {
        t_cur_ %= t_i_;
        t_i_ *= own_.T_mult;
      }
    }
    set(groups, next(groups));
  }

 private:
  std::vector<double> next(Groups&) override {
    return of_base([&](double base) {
      return own_.eta_min +
             (base - own_.eta_min) * (1 + std::cos(kPi * static_cast<double>(t_cur_) / static_cast<double>(t_i_))) / 2;
    });
  }
  void visit_own(StateFields& fields) override {
    fields.field("T_0", own_.T_0);
    fields.field("T_i", t_i_);
    fields.field("T_mult", own_.T_mult);
    fields.field("eta_min", own_.eta_min);
    fields.field("T_cur", t_cur_);
    if (t_i_ < 1 || t_cur_ < -1) throw InvalidArgument(c10::str("T_i is ", t_i_, " and T_cur is ", t_cur_));
  }

  std::int64_t t_i_;
  std::int64_t t_cur_ = -1;
};

class RunningOneCycleLR final : public ScheduleOf<OneCycleLR> {
 public:
  explicit RunningOneCycleLR(OneCycleLR schedule)
      : ScheduleOf(std::move(schedule)), strategy_(own_.anneal_strategy == AnnealStrategy::cos ? "cos" : "linear") {
    const auto total = static_cast<double>(own_.total_steps);
    if (own_.three_phase) {
      phases_ = {{own_.pct_start * total - 1, kFirst, kMost, kMostMomentum, kBaseMomentum},
                 {2 * own_.pct_start * total - 2, kMost, kFirst, kBaseMomentum, kMostMomentum},
                 {total - 1, kFirst, kLeast, kMostMomentum, kMostMomentum}};
    } else {
      phases_ = {{own_.pct_start * total - 1, kFirst, kMost, kMostMomentum, kBaseMomentum},
                 {total - 1, kMost, kLeast, kBaseMomentum, kMostMomentum}};
    }
  }

  void begin(Groups& groups) override {
    max_lrs_.clear();
    min_lrs_.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const double most = own_.max_lr.size() == 1 ? own_.max_lr.front() : own_.max_lr.at(i);
      groups[i].initial_lr = most / own_.div_factor;
      max_lrs_.push_back(most);
      min_lrs_.push_back(groups[i].initial_lr / own_.final_div_factor);
      if (own_.cycle_momentum) groups[i].momentum = own_.max_momentum;
    }
    SimpleSchedule::begin(groups);
  }

  Dict entries_of_group(std::size_t group) const override {
    Dict entries{{"initial_lr", base_lrs_.at(group)}, {"max_lr", max_lrs_.at(group)}, {"min_lr", min_lrs_.at(group)}};
    if (own_.cycle_momentum) {
      entries.emplace_back("max_momentum", own_.max_momentum);
      entries.emplace_back("base_momentum", own_.base_momentum);
    }
    return entries;
  }

 private:
  static constexpr const char* kFirst = "initial_lr";
  static constexpr const char* kMost = "max_lr";
  static constexpr const char* kLeast = "min_lr";
  static constexpr const char* kMostMomentum = "max_momentum";
  static constexpr const char* kBaseMomentum = "base_momentum";
  struct Phase {
    double end_step;
    std::string start_lr, end_lr, start_momentum, end_momentum;
  };

  double anneal(double start, double end, double part) const {
    if (strategy_ == "linear") return (end - start) * part + start;
    return end + (start - end) / 2.0 * (std::cos(kPi * part) + 1);
  }
  double rate(const std::string& name, std::size_t group) const {
    return name == kFirst ? base_lrs_[group] : name == kMost ? max_lrs_[group] : min_lrs_[group];
  }
  double momentum(const std::string& name) const {
    return name == kMostMomentum ? own_.max_momentum : own_.base_momentum;
  }

  std::vector<double> next(Groups& groups) override {
    if (last_epoch_ > own_.total_steps)
      throw InvalidArgument(
          c10::str("OneCycleLR: step() was called ", last_epoch_, " times; total_steps is ", own_.total_steps));
    const auto step_number = static_cast<double>(last_epoch_);
    double start_step = 0;
    std::size_t at = 0;
    for (; at + 1 < phases_.size() && step_number > phases_[at].end_step; ++at) start_step = phases_[at].end_step;
    const Phase& phase = phases_[at];
    const double steps = phase.end_step - start_step;
    const double part = steps == 0 ? 1 : (step_number - start_step) / steps;  // a phase without steps is at its end
    std::vector<double> rates;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      rates.push_back(anneal(rate(phase.start_lr, i), rate(phase.end_lr, i), part));
      if (own_.cycle_momentum)
        groups[i].momentum = anneal(momentum(phase.start_momentum), momentum(phase.end_momentum), part);
    }
    return rates;
  }

  void visit_own(StateFields& fields) override {
    fields.field("total_steps", own_.total_steps);
    visit_phases(fields);
    fields.field("_anneal_func_type", strategy_);
    fields.field("cycle_momentum", own_.cycle_momentum);
    // Python's scheduler has these in the optimizer's groups.
    fields.field("_max_lrs", max_lrs_);
    fields.field("_min_lrs", min_lrs_);
    fields.field("_max_momentum", own_.max_momentum);
    fields.field("_base_momentum", own_.base_momentum);
  }

  void visit_phases(StateFields& fields) {
    List list;
    for (const Phase& phase : phases_)
      list.emplace_back(Dict{{"end_step", phase.end_step},
                             {"start_lr", phase.start_lr},
                             {"end_lr", phase.end_lr},
                             {"start_momentum", phase.start_momentum},
                             {"end_momentum", phase.end_momentum}});
    Value phases = std::move(list);
    fields.field("_schedule_phases", phases);
    if (phases.items().empty()) throw InvalidArgument("it has no phases");
    phases_.clear();
    for (const Value& one : phases.items()) {
      const Config phase(one);
      phases_.push_back({phase.get<double>("end_step"), phase.get<std::string>("start_lr"),
                         phase.get<std::string>("end_lr"), phase.get<std::string>("start_momentum"),
                         phase.get<std::string>("end_momentum")});
    }
  }

  std::string strategy_;
  std::vector<Phase> phases_ = {};
  std::vector<double> max_lrs_ = {};
  std::vector<double> min_lrs_ = {};
};

class RunningLambdaLR final : public ScheduleOf<LambdaLR> {
 public:
  using ScheduleOf::ScheduleOf;

 private:
  std::vector<double> next(Groups&) override {
    return of_base([&](double base) { return base * own_.lr_lambda(last_epoch_); });
  }
  void visit_own(StateFields& fields) override {
    Value functions = List(std::max<std::size_t>(base_lrs_.size(), 1));  // which Python does not save either
    fields.field("lr_lambdas", functions);
  }
};

// Schedules that consist of others.
class CompositeSchedule : public RunningSchedule {
 public:
  explicit CompositeSchedule(const std::vector<Schedule>& schedules) {
    for (const Schedule& schedule : schedules) parts_.push_back(make_running(schedule));
  }

  // As in Python's groups, the last one counts.
  Dict entries_of_group(std::size_t group) const override {
    Config entries;
    for (const auto& part : parts_) {
      for (const auto& [name, value] : part->entries_of_group(group)) entries.set(name, value);
    }
    return entries.dict();
  }

 protected:
  void visit_parts(StateFields& fields) {
    std::vector<WithState*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    fields.field("_schedulers", parts);
  }
  [[noreturn]] static void refuse() { throw std::logic_error("a schedule of schedules is in a SequentialLR"); }

  std::vector<std::unique_ptr<RunningSchedule>> parts_ = {};
};

class RunningChain final : public CompositeSchedule {
 public:
  explicit RunningChain(const ChainedScheduler& schedule) : CompositeSchedule(schedule.schedulers) {}

  void begin(Groups& groups) override {
    for (const auto& part : parts_) part->begin(groups);
    last_lr_ = rates_of(groups);
  }
  void step(Groups& groups) override {
    const Dict before = write_state(*this);
    try {
      for (const auto& part : parts_) part->step(groups);
    } catch (...) {
      read_state(before, "a ChainedScheduler", *this);
      throw;
    }
    last_lr_ = rates_of(groups);
  }
  void undo() override { refuse(); }
  void initial_step(Groups&) override { refuse(); }
  void begin_late(Groups&) override { refuse(); }
  std::int64_t last_epoch() const override { return parts_.front()->last_epoch(); }
  void visit(StateFields& fields) override {
    fields.field("_last_lr", last_lr_);
    visit_parts(fields);
  }
};

class RunningSequence final : public CompositeSchedule {
 public:
  explicit RunningSequence(const SequentialLR& schedule)
      : CompositeSchedule(schedule.schedulers), milestones_(schedule.milestones) {}

  void begin(Groups& groups) override {
    for (const auto& part : parts_) part->begin(groups);
    for (Group& group : groups) group.lr = group.initial_lr;
    for (const auto& part : parts_) part->undo();
    last_epoch_ = 0;
    RunningSchedule& first = *parts_[index()];
    first.initial_step(groups);
    last_lr_ = first.last_lr();
  }
  void step(Groups& groups) override {
    ++last_epoch_;
    const std::size_t at = index();
    RunningSchedule& part = *parts_[at];
    try {
      at > 0 && milestones_[at - 1] == last_epoch_ ? part.begin_late(groups) : part.step(groups);
    } catch (...) {
      --last_epoch_;
      throw;
    }
    last_lr_ = part.last_lr();
  }
  void undo() override { refuse(); }
  void initial_step(Groups&) override { refuse(); }
  void begin_late(Groups&) override { refuse(); }
  std::int64_t last_epoch() const override { return last_epoch_; }
  void visit(StateFields& fields) override {
    fields.field("_milestones", milestones_);
    fields.field("last_epoch", last_epoch_);
    fields.field("_last_lr", last_lr_);
    check_count("last_epoch", last_epoch_);
    if (!std::ranges::is_sorted(milestones_)) throw InvalidArgument("its milestones do not ascend");
    if (milestones_.size() + 1 != parts_.size())
      throw InvalidArgument(c10::str("it has ", milestones_.size(), " milestones for ", parts_.size(), " schedules"));
    visit_parts(fields);
  }

 private:
  std::size_t index() const {
    return static_cast<std::size_t>(std::ranges::upper_bound(milestones_, last_epoch_) - milestones_.begin());
  }

  std::vector<std::int64_t> milestones_;
  std::int64_t last_epoch_ = 0;
};

}  // namespace

void check(const Schedule& schedule, std::size_t groups, bool has_momentum, Faults& faults) {
  std::visit(Checker{groups, has_momentum, faults}, schedule.kind());
}

std::string name_of(const Schedule& schedule) {
  return std::visit(
      base::Overload{[](const StepLR&) { return "a StepLR"; }, [](const MultiStepLR&) { return "a MultiStepLR"; },
                     [](const ConstantLR&) { return "a ConstantLR"; }, [](const LinearLR&) { return "a LinearLR"; },
                     [](const ExponentialLR&) { return "an ExponentialLR"; },
                     [](const PolynomialLR&) { return "a PolynomialLR"; },
                     [](const CosineAnnealingLR&) { return "a CosineAnnealingLR"; },
                     [](const CosineAnnealingWarmRestarts&) { return "CosineAnnealingWarmRestarts"; },
                     [](const OneCycleLR&) { return "a OneCycleLR"; }, [](const LambdaLR&) { return "a LambdaLR"; },
                     [](const ChainedScheduler&) { return "a ChainedScheduler"; },
                     [](const SequentialLR&) { return "a SequentialLR"; }},
      schedule.kind());
}

std::unique_ptr<RunningSchedule> make_running(const Schedule& schedule) {
  using Made = std::unique_ptr<RunningSchedule>;
  return std::visit(
      base::Overload{
          [](const StepLR& one) -> Made { return std::make_unique<RunningStepLR>(one); },
          [](const MultiStepLR& one) -> Made { return std::make_unique<RunningMultiStepLR>(one); },
          [](const ConstantLR& one) -> Made { return std::make_unique<RunningConstantLR>(one); },
          [](const LinearLR& one) -> Made { return std::make_unique<RunningLinearLR>(one); },
          [](const ExponentialLR& one) -> Made { return std::make_unique<RunningExponentialLR>(one); },
          [](const PolynomialLR& one) -> Made { return std::make_unique<RunningPolynomialLR>(one); },
          [](const CosineAnnealingLR& one) -> Made { return std::make_unique<RunningCosineAnnealingLR>(one); },
          [](const CosineAnnealingWarmRestarts& one) -> Made { return std::make_unique<RunningWarmRestarts>(one); },
          [](const OneCycleLR& one) -> Made { return std::make_unique<RunningOneCycleLR>(one); },
          [](const LambdaLR& one) -> Made { return std::make_unique<RunningLambdaLR>(one); },
          [](const ChainedScheduler& one) -> Made { return std::make_unique<RunningChain>(one); },
          [](const SequentialLR& one) -> Made { return std::make_unique<RunningSequence>(one); }},
      schedule.kind());
}

}  // namespace cadre::optim::detail
