// All result files of a run: results and errors of failed attempts (run/loggers/result_log.h), and validations
// (validation_log.h). They are derived from committed data and written shortly after the commit.
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

  // Replaces existing files in the directory, which must exist.
  ResultFiles(const std::filesystem::path& directory, const TrainerOptions& options);

  // Throws OutOfSpace on a full disk, like write(); both can be repeated after that.
  void write_params() { results_.write_params(config_); }
  // Adds a committed event and the resulting actions; `time` is in seconds since 1970.
  void see(const Event& event, const Actions& actions, double time, Time now);
  // Returns when pending rows must be written; empty: there are none.
  const std::optional<Time>& due() const { return due_; }
  void write();
  // Removes and returns a warning, if there is a new one.
  std::optional<std::string> take_warning();

 private:
  std::string name_;  // of the run
  Config config_;
  run::ResultLog results_;
  ResultRows rows_;
  std::optional<ValidationLog> validations_;                 // if JSON files are enabled
  std::deque<std::pair<std::int64_t, std::string>> errors_;  // attempt and error, not yet written
  std::optional<Time> due_;
  bool told_of_columns_ = false;
};

}  // namespace cadre::train
