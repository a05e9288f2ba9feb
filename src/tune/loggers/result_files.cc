#include "tune/loggers/result_files.h"

#include "base/directory.h"
#include "base/overload.h"

namespace cadre::tune {

void ResultFiles::log(const Action& action, double time) {
  const auto& trials = experiment_.trials();
  std::visit(
      base::Overload{[&](const LogResult& result) { add(result, time); },
                     [&](const LogExploit& exploit) {
                       pbt_log_.add(exploit, trials.at(exploit.target), trials.at(exploit.donor));
                     },
                     [&](const LogError& error) { files_of(error.trial).add_error(error.attempt, error.message); },
                     [&](const Launch& launch) {
                       base::make_directory(directory_of(launch.trial));
                       files_of(launch.trial).write_params(launch.config);
                     },
                     [&](const SaveTrial& save) { trial_changed(save.trial, time); }, [](const auto&) {}},
      action);
}

void ResultFiles::add(const LogResult& result, double time) {
  TrialFiles& files = files_of(result.trial);
  waiting_bytes_ += files.add(result, time);
  waiting_.insert(result.trial);
}

void ResultFiles::trial_changed(TrialIndex trial, double time) {
  const auto found = files_.find(trial);
  if (found == files_.end()) return;
  found->second->set_status_time(time);
  if (experiment_.trials().at(trial).ended()) ending_.insert(trial);
}

void ResultFiles::flush_ended() {
  while (!ending_.empty()) {
    const TrialIndex index = *ending_.begin();
    const Trial& trial = experiment_.trials().at(index);
    const auto files = files_.find(index);
    if (trial.ended() && files != files_.end()) {
      files->second->end(trial);
      files->second->flush();
      ended_[index] = files->second->stamp();
      files_.erase(files);
    }
    ending_.erase(index);
  }
}

void ResultFiles::flush() {
  flush_ended();
  for (const TrialIndex trial : waiting_) {
    if (const auto files = files_.find(trial); files != files_.end()) files->second->flush();
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  pbt_log_.flush();
}

ResultFiles::Stamp ResultFiles::stamp() const {
  Stamp stamp{ended_, pbt_log_.stamp()};
  for (const auto& [trial, files] : files_) stamp.trials[trial] = files->stamp();
  return stamp;
}

bool ResultFiles::resume(const Stamp& stamp) {
  if (!pbt_log_.resume(stamp.pbt_global, experiment_.trials())) return false;
  for (const auto& [index, written] : stamp.trials) {
    auto files = std::make_unique<TrialFiles>(directory_of(index));
    if (!files->resume(written)) return false;
    const Trial& trial = experiment_.trials().at(index);
    files->write_params(trial.config);
    if (trial.ended()) {
      ended_[index] = written;
    } else {
      files_[index] = std::move(files);
    }
  }
  return true;
}

void ResultFiles::begin_anew() {
  files_.clear();
  ended_.clear();
  waiting_.clear();
  ending_.clear();
  waiting_bytes_ = 0;
  pbt_log_ = PbtLog(directory_);
}

std::filesystem::path ResultFiles::directory_of(TrialIndex trial) const {
  return directory_ / experiment_.trials().at(trial).directory;
}

TrialFiles& ResultFiles::files_of(TrialIndex trial) {
  std::unique_ptr<TrialFiles>& files = files_[trial];
  if (!files) {
    files = std::make_unique<TrialFiles>(directory_of(trial));
    if (ended_.erase(trial) > 0) files->resume();  // it had ended, and was taken up again
  }
  return *files;
}

}  // namespace cadre::tune
