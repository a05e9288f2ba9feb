/// \file
/// The replay of a trial of Population Based Training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/tune/scheduler.h"
#include "cadre/value.h"

namespace cadre::tune {

/// The configs of one trial over its life: the first one, and every later one with the training_iteration after which
/// it applies, in order.
struct PolicySchedule {
  /// A change to another config.
  struct Change {
    std::int64_t change_at = 0;                      ///< training_iteration after which it applies
    Config config = {};                              ///< the whole new config
    bool operator==(const Change&) const = default;  ///< compares iteration and config
  };

  Config initial_config = {};                              ///< the trial's first config
  std::vector<Change> changes = {};                        ///< in order
  bool operator==(const PolicySchedule&) const = default;  ///< compares configs and iterations
};

/// Trains one trial with the schedule of configs that led to a trial of an earlier experiment with Population Based
/// Training, as recorded in its pbt_policy_<trial id>.txt. Reads files of Cadre and of Ray Tune, with the behaviour of
/// Ray Tune's scheduler of the same name; docs/from-ray-tune.md lists the differences.
///
/// The trial begins with the file's first config. At its first result whose training_iteration has reached `change_at`,
/// it starts again from its newest checkpoint with the next config; each result makes at most one change. If that
/// result carries a checkpoint, as in a replay of the same training function, no iteration is lost. Otherwise the
/// iterations since the newest checkpoint are trained again, with the new config: Ray Tune's files name an iteration
/// that may be later than the checkpoint from which the trial continued. A trial that has no checkpoint by then fails,
/// and its error says so. Results without training_iteration change nothing. If a restore finds a checkpoint missing,
/// the trial continues from an older one with the config that it had.
///
/// param_space must make exactly one trial: num_samples 1, no grids, no points_to_evaluate. Keys of it that the file's
/// first config does not have keep their drawn values throughout; for all other keys the file takes precedence, and a
/// warning names them.
struct PopulationBasedTrainingReplay {
  std::filesystem::path policy_file = {};  ///< a leading ~ is the home directory
  /// The content of the file. Default: read from it when the Tuner is made, which throws InvalidArgument that names the
  /// line if it is not such a file. It becomes part of the experiment, which a restore continues without the file.
  std::optional<PolicySchedule> schedule = {};

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;  ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;           ///< finds what is wrong
  /// Reads the file, and gives the search space the schedule's first config.
  void complete(TunerOptions& options, std::vector<std::string>& notes);
  /// Returns the schedule's later configs, for a trial with this first one.
  std::vector<std::pair<std::string, Config>> later_configs(const Config& first) const;
  Scheduler::Traits traits() const;                             ///< it exploits
  void take_over(const PopulationBasedTrainingReplay& stored);  ///< takes the schedule that was read before
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTrainingReplay>;
inline const bool knows_population_based_training_replay =
    HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTrainingReplay>::known();
}  // namespace detail

}  // namespace cadre::tune
