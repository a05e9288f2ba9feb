#include "tune/schedulers/scheduler.h"

#include "tune/schedulers/fifo.h"
#include "tune/schedulers/population_based_training.h"
#include "tune/schedulers/population_based_training_replay.h"

namespace cadre::tune {
namespace {

struct Make {
  std::uint64_t seed;

  std::unique_ptr<TrialScheduler> operator()(const FIFO&) const { return std::make_unique<FifoScheduler>(); }
  std::unique_ptr<TrialScheduler> operator()(const PopulationBasedTraining& settings) const {
    return std::make_unique<PbtScheduler>(settings, seed);
  }
  std::unique_ptr<TrialScheduler> operator()(const PopulationBasedTrainingReplay& settings) const {
    return std::make_unique<PbtReplayScheduler>(*settings.schedule);
  }
};

}  // namespace

std::unique_ptr<TrialScheduler> make_scheduler(const Scheduler& description, std::uint64_t seed) {
  return std::visit(Make{seed}, description);
}

}  // namespace cadre::tune
