#include "cadre/tune/schedulers/fifo.h"

namespace cadre::tune {
namespace {

class FifoScheduler final : public Scheduler {
 public:
  Decision on_result(const TrialView&, const Metrics&, const Population&) override { return {}; }
  std::string debug_string() const override { return "Using FIFO scheduling algorithm."; }
};

}  // namespace

std::unique_ptr<Scheduler> FIFO::make(const SchedulerSetting&) const { return std::make_unique<FifoScheduler>(); }

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, FIFO>;

}  // namespace cadre::tune
