// All result files of a run: results and attempts that have failed (run/loggers/result_log.h), validations
// (validation_log.h). They follow from what is committed, and are written a little after it.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cadre/train.h"
#include "engine/engine.h"
#include "run/loggers/result_log.h"
#include "train/events.h"
#include "train/result_rows.h"
#include "train/validation_log.h"

namespace cadre::train {

class ResultFiles {
 public:
  using Time = engine::Engine::Clock::time_point;

  // Existing files in the directory, which must exist, are replaced.
  ResultFiles(const std::filesystem::path& directory, const TrainerOptions& options);

  // Throws OutOfSpace on a full disk, as write() does; both can be called again.
  void write_params() { results_.write_params(config_); }
  // Takes what was committed: an event and what followed from it, `time` in seconds since 1970.
  void see(const Event& event, const Actions& actions, double time, Time now);
  // When what waits is to be written; empty: nothing waits.
  const std::optional<Time>& due() const { return due_; }
  void write();
  // A warning that nobody has taken yet.
  std::optional<std::string> take_warning();

 private:
  std::string name_;  // of the run
  Config config_;
  run::ResultLog results_;
  ResultRows rows_;
  std::optional<ValidationLog> validations_;                 // where there are files in JSON
  std::deque<std::pair<std::int64_t, std::string>> errors_;  // attempt, error: those that wait
  std::optional<Time> due_;
  bool told_of_columns_ = false;
};

}  // namespace cadre::train
