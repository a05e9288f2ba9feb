// All result files of an experiment. They follow from what happened: the controller feeds them the core's actions, and
// after an interruption they are either found to be what they were at the last snapshot, or written anew.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run/loggers/result_log.h"
#include "tune/events.h"
#include "tune/experiment.h"
#include "tune/loggers/pbt_log.h"

namespace cadre::tune {

class ResultFiles {
 public:
  // `logs_exploits`: whether there are pbt_*.txt.
  ResultFiles(std::filesystem::path directory, const Experiment& experiment, bool logs_exploits, Loggers loggers = {})
      : directory_(std::move(directory)),
        experiment_(experiment),
        logs_exploits_(logs_exploits),
        loggers_(loggers),
        pbt_log_(directory_) {}

  // Takes an action that the experiment has just asked for, at `time` (seconds since 1970); most are none of the files'
  // business. Results wait in memory for flush(). After a StorageError it can be called again with the same action.
  void log(const Action& action, double time);
  // Writes what waits, or only what should not wait: exploits, and the results of trials that have ended. After a
  // StorageError it can be called again, and nothing is written twice.
  void flush();
  void flush_urgent();
  // What a person should know of what was logged since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  // Of results that wait.
  std::size_t waiting_bytes() const { return waiting_bytes_; }

  // What the files of trials that have not ended hold when nothing is left to be flushed, and pbt_global.txt.
  struct Stamp {
    std::map<TrialIndex, run::ResultLog::Stamp> trials = {};
    base::AppendFile::Stamp pbt_global = {};

    static void fields(auto& archive, auto& stamp) {
      archive("trials", stamp.trials);
      archive("pbt_global", stamp.pbt_global);
    }
  };
  Stamp stamp() const;
  // Goes on with the files as they were, cutting off what came later. False when one of them is not what it was; only
  // begin_anew() helps then.
  bool resume(const Stamp& stamp);

  // The files of a trial that has ended: their sizes in bytes, by name.
  Dict sizes_of_ended(TrialIndex trial) const;
  // Leaves the files of an ended trial as they are. `sizes`, where given, is what they must have: a loss of power may
  // have cut them, and there may be too many of them to look at without need. False when they do not.
  bool resume_ended(const Trial& trial, const Dict* sizes);
  // Forgets everything: what is logged from now on, from the experiment's first event on, replaces the files.
  void begin_anew();

 private:
  std::filesystem::path directory_of(TrialIndex trial) const;
  void make_directory_of(TrialIndex trial) const;
  std::unique_ptr<run::ResultLog> open_files(TrialIndex trial) const;
  run::ResultLog& files_of(TrialIndex trial);
  void add(const LogResult& result, double time);
  void set_ended(TrialIndex trial);

  std::filesystem::path directory_;
  const Experiment& experiment_;
  bool logs_exploits_;
  Loggers loggers_;
  std::map<TrialIndex, std::unique_ptr<run::ResultLog>> files_;  // of trials that have not ended
  std::vector<bool> ended_;                                      // by trial: it has files, and they are closed
  std::set<TrialIndex> waiting_;                                 // trials with results that wait
  std::map<TrialIndex, double> ending_;  // trials whose files are to be closed, and when they ended
  std::size_t waiting_bytes_ = 0;
  bool warned_of_columns_ = false;
  std::vector<std::string> warnings_;
  PbtLog pbt_log_;
};

}  // namespace cadre::tune
