#include "train/result_files.h"

#include <algorithm>

namespace cadre::train {
namespace {

// Results are written at once if more than this wait.
constexpr std::size_t kMostWaitingBytes = std::size_t{1} << 20;

}  // namespace

ResultFiles::ResultFiles(const std::filesystem::path& directory, const TrainerOptions& options)
    : name_(directory.filename()),
      config_(options.train_loop_config),
      results_(directory, options.run_config.logging_config.loggers,
               {.store = directory / loggers::kMlflowFolder,
                .experiment = name_,
                .location = std::filesystem::absolute(directory),
                .run = name_,
                .run_location = std::filesystem::absolute(directory)}) {
  if (options.run_config.logging_config.loggers.json) validations_.emplace(directory);
}

void ResultFiles::log(const Event& event, const Actions& actions, double time) {
  if (std::optional<Dict> row = rows_.add(event, actions, time)) {
    results_.add(*std::move(row), config_, time);
    is_urgent_ |= results_.waiting_bytes() > kMostWaitingBytes;
  }
  for (const Action& action : actions) {
    if (const auto* failed = std::get_if<TellOfFailure>(&action)) {
      errors_.emplace_back(failed->attempt, failed->error);
      is_urgent_ = true;
    }
    if (const auto* saved = std::get_if<SaveRun>(&action)) {
      if (saved->status == RunStatus::finished || saved->status == RunStatus::failed)
        results_.end_run(saved->status == RunStatus::finished, time);
    }
    if (const auto* validation = std::get_if<ShowValidation>(&action)) {
      if (validations_) validations_->add(*validation, time);
      if (const std::optional<Amendment> more = amendment_of(*validation))
        results_.amend(more->number, more->values, more->row, time);
    }
  }
}

void ResultFiles::write() {
  for (; !errors_.empty(); errors_.pop_front()) results_.add_error(errors_.front().first, errors_.front().second);
  results_.flush();
  if (validations_) validations_->flush();
  is_urgent_ = false;
}

std::optional<std::string> ResultFiles::take_warning() {
  if (!results_.lacks_columns() || std::exchange(told_of_columns_, true)) return std::nullopt;
  return loggers::ResultLog::columns_warning(name_);
}

}  // namespace cadre::train
