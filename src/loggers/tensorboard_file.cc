#include "loggers/tensorboard_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/directory.h"
#include "base/name.h"
#include "base/utf8.h"
#include "loggers/result_keys.h"

namespace cadre::loggers {
namespace {

constexpr std::string_view kTagPrefix = "ray/tune/";

// Returns true for metrics that would be scalars, but are of no interest as such.
bool is_skipped(std::string_view key) {
  constexpr std::array<std::string_view, 5> skipped{"config", result_key::pid, result_key::timestamp,
                                                    result_key::time_total_s, result_key::training_iteration};
  return std::ranges::find(skipped, key) != skipped.end() || key.starts_with("config/");
}

std::optional<double> scalar_of(const Value& value) {
  if (value.is_bool()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number() || std::isnan(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

// Returns the finite numbers of a list of numbers; none if it holds anything else.
std::vector<double> numbers_of(const List& items) {
  std::vector<double> numbers;
  for (const Value& item : items) {
    if (!item.is_number()) return {};
    if (const auto number = item.get<double>(); std::isfinite(number)) numbers.push_back(number);
  }
  return numbers;
}

// Returns timesteps_total if it is set and not 0, otherwise training_iteration.
std::int64_t step_of(const Dict& flat_row) {
  for (const std::string_view key : {result_key::timesteps_total, result_key::training_iteration}) {
    const Value* value = find_entry(flat_row, key);
    if (value != nullptr && value->is_integer() && value->get<std::int64_t>() != 0) return value->get<std::int64_t>();
  }
  return 0;
}

}  // namespace

TensorBoardFile::Stamp TensorBoardFile::stamp() const {
  if (!file_) return {};
  return {file_->path().filename().string(), file_->stamp()};
}

bool TensorBoardFile::resume(const Stamp& stamp) {
  if (stamp.name.empty()) return true;
  base::AppendFile file(directory_ / stamp.name);
  if (!file.resume(stamp.content)) return false;
  file_ = std::move(file);
  go_on(base::read_file(file_->path()));
  return true;
}

void TensorBoardFile::resume() {
  for (const std::string& name : base::list_directory(directory_)) {
    if (!name.starts_with(kNamePrefix)) continue;
    const std::string content = base::read_file(directory_ / name);
    if (!tensorboard::is_cadres(content)) continue;
    const std::string_view results = std::string_view(content).substr(0, tensorboard::read_content(content).results);
    file_.emplace(directory_ / name);
    file_->resume({static_cast<std::int64_t>(results.size()), base::checksum_of(results)});
    go_on(content);
  }
}

void TensorBoardFile::go_on(const std::string& content) {
  const tensorboard::FileContent known = tensorboard::read_content(content);
  start_time_ = known.start_time;
  for (const std::string& tag : known.scalar_tags) kinds_.emplace(tag, Kind::scalar);
  for (const std::string& tag : known.histogram_tags) kinds_.emplace(tag, Kind::histogram);
}

void TensorBoardFile::begin(const Dict& flat_row, double time) {
  const Value* host = find_entry(flat_row, result_key::hostname);
  const std::string host_name = host != nullptr && host->is_string() ? host->get<std::string>() : "localhost";
  const std::string seconds = std::to_string(static_cast<std::int64_t>(time));
  file_.emplace(directory_ / (std::string(kNamePrefix) + seconds + "." + base::safe_file_name(host_name, 64)));
  is_new_ = true;
  start_time_ = time;
  tensorboard::append_file_version(pending_, time);
}

void TensorBoardFile::add(const Dict& flat_values, const Dict& flat_row, double time) {
  if (!file_) begin(flat_row, time);
  summary_.clear();
  for (const auto& [key, value] : flat_values) {
    if (!is_skipped(key)) append_value(key, value);
  }
  tensorboard::append_step(pending_, time, step_of(flat_row), summary_);
}

void TensorBoardFile::append_value(const std::string& key, const Value& value) {
  if (const std::optional<double> scalar = scalar_of(value)) {
    tensorboard::append_scalar(summary_, tag_of(key, Kind::scalar), static_cast<float>(*scalar));
  } else if (value.is_list()) {
    const std::vector<double> numbers = numbers_of(value.items());
    if (!numbers.empty()) tensorboard::append_histogram(summary_, tag_of(key, Kind::histogram), numbers);
  }
}

// Returns the tag of a metric. A metric that changes its kind continues under another tag.
const std::string& TensorBoardFile::tag_of(std::string_view key, Kind kind) {
  tag_.assign(kTagPrefix);
  tag_ += base::is_utf8(key) ? key : base::to_utf8(key);
  auto known = kinds_.find(tag_);
  if (known == kinds_.end()) known = kinds_.emplace(tag_, kind).first;
  if (known->second != kind) {
    tag_ += kind == Kind::scalar ? "/scalar" : "/histogram";
    kinds_.emplace(tag_, kind);
  }
  return tag_;
}

void TensorBoardFile::end(tensorboard::Session session, const Dict& last_flat_row) {
  if (!file_ || std::exchange(ended_, true) || session.hparams.empty()) return;
  session.start_time = start_time_;
  for (const auto& [key, value] : last_flat_row) {
    if (!is_skipped(key) && scalar_of(value)) session.metric_tags.push_back(tag_of(key, Kind::scalar));
  }
  tensorboard::append_session(pending_, session);
}

void TensorBoardFile::flush() {
  if (pending_.empty()) return;
  if (is_new_) {
    remove_older_files();
    file_->replace(pending_);
    is_new_ = false;
  } else {
    file_->append(pending_);
  }
  pending_.clear();
}

// Removes files of an earlier controller, which began its file at another time, with a result that a loss of power has
// undone. Keeps files that the training function wrote into the directory.
void TensorBoardFile::remove_older_files() {
  for (const std::string& name : base::list_directory(directory_)) {
    const std::filesystem::path path = directory_ / name;
    if (name.starts_with(kNamePrefix) && path != file_->path() && tensorboard::is_cadres(base::read_file(path)))
      base::remove_tree(path);
  }
}

}  // namespace cadre::loggers
