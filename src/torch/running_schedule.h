// The schedules of cadre/torch/lr_scheduler.h, step by step. Pure: an optimizer is the numbers of its groups here.
// Formulas are those of torch.optim.lr_scheduler, in the order of its operations, so results are the same, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/faults.h"
#include "cadre/torch/lr_scheduler.h"
#include "torch/state_fields.h"

namespace cadre::optim::detail {

// Holds the numbers of an optimizer's group of parameters that a schedule reads and sets.
struct Group {
  double lr = 0;
  double initial_lr = 0;                // when the scheduler was made, or as that says
  std::optional<double> momentum = {};  // or the first beta; empty: the optimizer has none
};
using Groups = std::vector<Group>;

class RunningSchedule : public WithState {
 public:
  // Sets what epoch 0 has.
  virtual void begin(Groups& groups) = 0;
  virtual void step(Groups& groups) = 0;

  // For SequentialLR: undo begin(), but for the rates; begin with epoch 0 after all; begin later.
  virtual void undo() = 0;
  virtual void initial_step(Groups& groups) = 0;
  virtual void begin_late(Groups& groups) = 0;

  virtual std::int64_t last_epoch() const = 0;
  const std::vector<double>& last_lr() const { return last_lr_; }
  // Returns more entries of Python's param_groups than the optimizer has, of one group.
  virtual Dict entries_of_group(std::size_t group) const = 0;

 protected:
  std::vector<double> last_lr_ = {};
};

// Adds all faults of a schedule. `groups`: how many the optimizer has; `has_momentum`: whether it has one to cycle.
void check(const Schedule& schedule, std::size_t groups, bool has_momentum, Faults& faults);
// Returns "a StepLR".
std::string name_of(const Schedule& schedule);
std::unique_ptr<RunningSchedule> make_running(const Schedule& schedule);

}  // namespace cadre::optim::detail
