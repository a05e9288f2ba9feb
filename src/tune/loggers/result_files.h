// All result files of an experiment. They follow from the events: the controller passes the core's actions to them, and
// after an interruption the files are either unchanged since the last snapshot, or written anew.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loggers/result_log.h"
#include "tune/events.h"
#include "tune/experiment.h"
#include "tune/loggers/pbt_log.h"

namespace cadre::tune {

class ResultFiles {
 public:
  // `logs_exploits`: pbt_*.txt are written. `schedule`: paths of the parameters that the scheduler changes.
  ResultFiles(std::filesystem::path directory, const Experiment& experiment, bool logs_exploits, Loggers loggers = {},
              std::vector<std::string> schedule = {})
      : directory_(std::move(directory)),
        experiment_(experiment),
        logs_exploits_(logs_exploits),
        loggers_(loggers),
        schedule_(std::move(schedule)),
        pbt_log_(directory_) {}

  // Logs an action of the experiment at `time` (seconds since 1970); most actions change no file. Results wait in
  // memory for flush(). After a StorageError it can be called again with the same action.
  void log(const Action& action, double time);
  // `flush` writes all waiting data, `flush_urgent` only exploits and the results of ended trials. After a StorageError
  // they can be called again; nothing is written twice.
  void flush();
  void flush_urgent();
  // Returns the warnings for the user since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  // Returns the size of the results that wait.
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  // Returns true if the directory of a trial that was launched was there before.
  bool found_directory_of(TrialIndex trial) const { return found_.contains(trial); }

  // The state of pbt_global.txt and of the files of trials that have not ended, when nothing is left to flush.
  struct Stamp {
    std::map<TrialIndex, loggers::ResultLog::Stamp> trials = {};
    base::AppendFile::Stamp pbt_global = {};
  };
  Stamp stamp() const;
  // Continues the files from the stamp, cutting off later data. Returns false if one of them has changed; then only
  // begin_anew() helps.
  bool resume(const Stamp& stamp);

  // Returns the sizes in bytes of the files of an ended trial, by name.
  Dict sizes_of_ended(TrialIndex trial) const;
  // Keeps the files of an ended trial as they are. If `sizes` is given, returns false if the files have other sizes: a
  // loss of power may have cut them. Without it nothing is checked, because there may be very many such files.
  bool resume_ended(const Trial& trial, const Dict* sizes);
  // Forgets everything: the experiment's actions, logged again from its first event on, then replace the files.
  void begin_anew();

 private:
  struct Ending {
    LogEnd end = {};
    double time = 0;
  };

  std::filesystem::path directory_of(TrialIndex trial) const;
  void make_directory_of(TrialIndex trial);
  std::unique_ptr<loggers::ResultLog> open_files(TrialIndex trial) const;
  loggers::ResultLog& files_of(TrialIndex trial);
  void add(const LogResult& result, double time);
  void set_ended(TrialIndex trial);

  std::filesystem::path directory_;
  const Experiment& experiment_;
  bool logs_exploits_;
  Loggers loggers_;
  std::vector<std::string> schedule_;
  std::map<TrialIndex, std::unique_ptr<loggers::ResultLog>> files_;  // of trials that have not ended
  std::vector<bool> ended_;              // by trial; true: it has files, and they are closed
  std::set<TrialIndex> found_;           // trials whose directories are not of this process
  std::set<TrialIndex> waiting_;         // trials with waiting results
  std::map<TrialIndex, Ending> ending_;  // trials whose files are to be closed
  std::size_t waiting_bytes_ = 0;
  bool warned_of_columns_ = false;
  std::vector<std::string> warnings_;
  PbtLog pbt_log_;
};

}  // namespace cadre::tune
