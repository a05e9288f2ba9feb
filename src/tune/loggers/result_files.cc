#include "tune/loggers/result_files.h"

#include "base/file.h"
#include "base/overload.h"

namespace cadre::tune {

void ResultFiles::log(const Action& action, double time) {
  const auto& trials = experiment_.trials();
  std::visit(
      base::Overload{[&](const LogResult& result) { files_of(result.trial).add(result, time); },
                     [&](const LogExploit& exploit) {
                       pbt_log_.add(exploit, trials.at(exploit.target), trials.at(exploit.donor));
                     },
                     [&](const LogError& error) { files_of(error.trial).add_error(error.attempt, error.message); },
                     [&](const Launch& launch) {
                       base::make_directory(directory_of(launch.trial));
                       files_of(launch.trial).write_params(launch.config);
                     },
                     [&](const SaveTrial& save) {
                       if (const auto found = files_.find(save.trial); found != files_.end())
                         found->second->set_status_time(time);
                     },
                     [](const auto&) {}},
      action);
}

void ResultFiles::flush() {
  for (auto entry = files_.begin(); entry != files_.end();) {
    auto& [trial, files] = *entry;
    const bool ended = experiment_.trials().at(trial).ended();
    if (ended) files->end(experiment_.trials().at(trial));
    files->flush();
    if (ended) ended_[trial] = files->stamp();
    entry = ended ? files_.erase(entry) : std::next(entry);
  }
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
