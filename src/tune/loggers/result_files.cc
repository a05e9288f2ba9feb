#include "tune/loggers/result_files.h"

#include "base/directory.h"
#include "base/overload.h"
#include "tune/loggers/trial_rows.h"

namespace cadre::tune {

void ResultFiles::log(const Action& action, double time) {
  const auto& trials = experiment_.trials();
  std::visit(base::Overload{[&](const LogResult& result) { add(result, time); },
                            [&](const LogExploit& exploit) {
                              if (!logs_exploits_) return;
                              pbt_log_.add(exploit, trials.at(exploit.target), trials.at(exploit.donor));
                            },
                            [&](const LogError& error) {
                              make_directory_of(error.trial);  // the trial may have failed before its first launch
                              files_of(error.trial).add_error(error.attempt, error.message);
                            },
                            [&](const Launch& launch) {
                              make_directory_of(launch.trial);
                              files_of(launch.trial).write_params(launch.config);
                            },
                            [&](const LogEnd& end) {
                              if (files_.contains(end.trial)) ending_[end.trial] = {end, time};
                            },
                            [](const auto&) {}},
             action);
}

void ResultFiles::add(const LogResult& result, double time) {
  loggers::ResultLog& files = files_of(result.trial);
  waiting_bytes_ += files.add(row_of(result), result.config, time);
  waiting_.insert(result.trial);
  if (files.lacks_columns() && !std::exchange(warned_of_columns_, true))
    warnings_.push_back(loggers::ResultLog::columns_warning(experiment_.trials().at(result.trial).directory));
}

void ResultFiles::flush_urgent() {
  pbt_log_.flush();
  while (!ending_.empty()) {
    const auto& [index, ending] = *ending_.begin();
    loggers::ResultLog& files = *files_.at(index);
    files.end(session_of(experiment_.trials().at(index), ending.end, ending.time), last_row_of(ending.end));
    files.flush();
    files_.erase(index);
    set_ended(index);
    ending_.erase(ending_.begin());
  }
}

void ResultFiles::flush() {
  flush_urgent();
  for (const TrialIndex trial : waiting_) {
    if (const auto files = files_.find(trial); files != files_.end()) files->second->flush();
  }
  waiting_.clear();
  waiting_bytes_ = 0;
}

ResultFiles::Stamp ResultFiles::stamp() const {
  Stamp stamp{.trials = {}, .pbt_global = pbt_log_.stamp()};
  for (const auto& [trial, files] : files_) stamp.trials[trial] = files->stamp();
  return stamp;
}

bool ResultFiles::resume(const Stamp& stamp) {
  if (!pbt_log_.resume(stamp.pbt_global, experiment_.trials())) return false;
  for (const auto& [index, written] : stamp.trials) {
    auto files = open_files(index);
    if (!files->resume(written)) return false;
    files->write_params(experiment_.trials().at(index).config);
    files_[index] = std::move(files);
  }
  return true;
}

Dict ResultFiles::sizes_of_ended(TrialIndex trial) const { return loggers::ResultLog::sizes(directory_of(trial)); }

bool ResultFiles::resume_ended(const Trial& trial, const Dict* sizes) {
  set_ended(trial.index);
  return sizes == nullptr || loggers::ResultLog::have_sizes(directory_ / trial.directory, *sizes);
}

void ResultFiles::set_ended(TrialIndex trial) {
  if (ended_.size() <= trial) ended_.resize(trial + 1);
  ended_[trial] = true;
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

void ResultFiles::make_directory_of(TrialIndex trial) {
  if (!base::make_own_directory(directory_of(trial))) found_.insert(trial);
}

std::unique_ptr<loggers::ResultLog> ResultFiles::open_files(TrialIndex trial) const {
  base::require_own_directory(directory_of(trial));
  return std::make_unique<loggers::ResultLog>(
      directory_of(trial), loggers_,
      loggers::MlflowPlace{.store = directory_ / loggers::kMlflowFolder,
                           .experiment = directory_.filename(),
                           .location = std::filesystem::absolute(directory_),
                           .run = experiment_.trials().at(trial).id,
                           .run_location = std::filesystem::absolute(directory_of(trial)),
                           .schedule = schedule_});
}

loggers::ResultLog& ResultFiles::files_of(TrialIndex trial) {
  if (ending_.contains(trial)) flush_urgent();  // the trial was taken up again
  std::unique_ptr<loggers::ResultLog>& files = files_[trial];
  if (!files) {
    files = open_files(trial);
    if (trial < ended_.size() && ended_[trial]) {  // the trial was taken up again
      files->resume();
      ended_[trial] = false;
    }
  }
  return *files;
}

}  // namespace cadre::tune
