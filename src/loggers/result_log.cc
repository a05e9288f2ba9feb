#include "loggers/result_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/directory.h"
#include "base/host_object.h"
#include "base/json.h"
#include "loggers/flat_row.h"

namespace cadre::loggers {

ResultLog::ResultLog(const std::filesystem::path& directory, Loggers loggers, MlflowPlace mlflow)
    : directory_(directory),
      loggers_(loggers),
      json_(directory / kResultFile),
      csv_(directory / kProgressFile),
      tensorboard_(directory),
      errors_(directory / kErrorFile),
      mlflow_(std::move(mlflow)) {}

bool ResultLog::resume(const Stamp& stamp) {
  if (!json_.resume(stamp.json) || !csv_.resume(stamp.csv) || !tensorboard_.resume(stamp.tensorboard) ||
      !errors_.resume(stamp.errors) || (loggers_.mlflow && !mlflow_.resume(stamp.mlflow)))
    return false;
  json_is_new_ = stamp.json.size == 0;
  return true;
}

void ResultLog::resume() {
  json_is_new_ = false;
  json_.resume();
  csv_.resume({});
  tensorboard_.resume();
  errors_.resume();
  if (loggers_.mlflow) mlflow_.resume();
}

Dict ResultLog::sizes(const std::filesystem::path& directory) {
  Dict sizes;
  if (!std::filesystem::is_directory(directory)) return sizes;  // the trial has never run
  for (const std::string& name : base::list_directory(directory)) {
    if (name == kResultFile || name == kProgressFile || name.starts_with(TensorBoardFile::kNamePrefix))
      sizes.emplace_back(name, std::filesystem::file_size(directory / name));
  }
  return sizes;
}

bool ResultLog::have_sizes(const std::filesystem::path& directory, const Dict& sizes) {
  return std::ranges::all_of(sizes, [&](const auto& entry) {
    std::error_code missing;
    return std::filesystem::file_size(directory / entry.first, missing) == entry.second.template get<std::uintmax_t>();
  });
}

std::size_t ResultLog::add(Dict row, const Config& config, double time) {
  const std::size_t before = waiting_bytes();
  const Dict flat = flatten(row);
  if (loggers_.csv) csv_.add(flat);
  if (loggers_.tensorboard) tensorboard_.add(flat, time);
  if (loggers_.mlflow) mlflow_.add(flat, config, time);
  if (!loggers_.json) return waiting_bytes() - before;
  row.emplace_back("config", base::without_host_objects(config.value()));
  base::append_json(pending_json_, row);
  pending_json_ += '\n';
  return waiting_bytes() - before;
}

void ResultLog::amend(std::size_t number, Dict values, const Dict& row, double time) {
  if (loggers_.tensorboard) tensorboard_.add(flatten(values), flatten(row), time);
  if (loggers_.mlflow) mlflow_.add_values(flatten(values), flatten(row), time);
  if (loggers_.json) json_lacks_.add(number, values);
  if (loggers_.csv) csv_lacks_.add(number, values);
}

void ResultLog::Lacking::add(std::size_t number, const Dict& values) {
  Dict& more = amendments[number];
  more = amended(std::move(more), values);
}

bool ResultLog::Lacking::is_due(const base::AppendFile::Stamp& file) const {
  return !amendments.empty() && (file.size <= kSmallFile || file.size - size >= file.size / kGrowth);
}

void ResultLog::end(tensorboard::Session session, const Dict& last_row) {
  if (loggers_.mlflow)
    mlflow_.set_status(session.success ? MlflowStatus::finished : MlflowStatus::failed, session.end_time);
  if (loggers_.tensorboard) tensorboard_.end(std::move(session), flatten(last_row));
}

void ResultLog::end_run(bool success, double time) {
  if (loggers_.mlflow) mlflow_.set_status(success ? MlflowStatus::finished : MlflowStatus::failed, time);
}

void ResultLog::flush() {
  csv_.flush();
  tensorboard_.flush();
  if (loggers_.mlflow) mlflow_.flush();
  if (!pending_json_.empty()) {
    if (json_is_new_) json_.replace("");
    json_is_new_ = false;
    json_.append(pending_json_);
    pending_json_.clear();
  }
  if (csv_lacks_.is_due(csv_.stamp())) amend_csv();
  if (json_lacks_.is_due(json_.stamp())) amend_json();
}

void ResultLog::complete() {
  flush();
  if (!csv_lacks_.amendments.empty()) amend_csv();
  if (!json_lacks_.amendments.empty()) amend_json();
}

void ResultLog::amend_csv() {
  csv_.amend(csv_lacks_.amendments);
  csv_lacks_ = {.amendments = {}, .size = csv_.stamp().size};
}

void ResultLog::amend_json() {
  json_.replace(amended_lines(base::read_file(json_.path()), json_lacks_.amendments));
  json_lacks_ = {.amendments = {}, .size = json_.stamp().size};
}

std::string ResultLog::columns_warning(const std::string& directory) {
  return fmt::format(
      "{}/{} has {} columns or more, and metrics that come later are in {} only. Does a metric's name change from one "
      "result to the next?",
      directory, kProgressFile, ProgressCsv::kMostColumns, kResultFile);
}

void ResultLog::add_error(std::int64_t attempt, const std::string& message) {
  errors_.add(attempt, message);
  mlflow_.set_tag("cadre.error", message);
}

void ResultLog::write_params(const Config& config) {
  mlflow_.set_config(config);
  base::replace_file(directory_ / kParamsFile, base::to_pretty_json(base::without_host_objects(config.value()).dict()));
}

}  // namespace cadre::loggers
