// All result files of a run: results and errors of failed attempts (loggers/result_log.h), and validations
// (validation_log.h). They are derived from committed data and written within 100 ms after the commit.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cadre/train.h"
#include "loggers/result_log.h"
#include "train/events.h"
#include "train/result_rows.h"
#include "train/validation_log.h"

namespace cadre::train {

class ResultFiles {
 public:
  // Replaces existing files in the directory, which must exist.
  ResultFiles(const std::filesystem::path& directory, const TrainerOptions& options);

  // Throws OutOfSpace on a full disk, like write(); both can be repeated after that.
  void write_params() { results_.write_params(config_); }
  // Adds a committed event and the resulting actions; `time` is in seconds since 1970.
  void log(const Event& event, const Actions& actions, double time);
  // Returns true if the pending rows must be written at once.
  bool is_urgent() const { return is_urgent_; }
  void write();
  // Completes rows to which values were added, at the end of the session; throws like write().
  void complete() { results_.complete(); }
  // Removes and returns a warning, if there is a new one.
  std::optional<std::string> take_warning();

 private:
  std::string name_;  // of the run
  Config config_;
  loggers::ResultLog results_;
  ResultRows rows_;
  std::optional<ValidationLog> validations_;                 // if JSON files are enabled
  std::deque<std::pair<std::int64_t, std::string>> errors_;  // attempt and error, not yet written
  bool is_urgent_ = false;
  bool told_of_columns_ = false;
};

}  // namespace cadre::train
