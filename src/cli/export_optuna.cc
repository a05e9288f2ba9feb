// cadre export --optuna: an experiment as a study in a journal of Optuna's. Source: optuna.storages.journal of
// Optuna 5.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "cadre/error.h"
#include "cli/exports.h"
#include "cli/find.h"
#include "cli/optuna_distributions.h"
#include "loggers/flat_row.h"
#include "loggers/result_keys.h"

namespace cadre::cli {
namespace {

// Optuna's numbers of operations, directions and states.
enum class Operation { create_study = 0, set_study_user_attr = 2, set_study_system_attr = 3, create_trial = 4 };
enum class State { running = 0, complete = 1, pruned = 2, fail = 3, waiting = 4 };

// The name of the process in each line; Optuna's are made of a random number.
constexpr const char* kWriter = "cadre-export";

void append_operation(std::string& journal, Operation operation, const Dict& fields) {
  Dict line{{"op_code", static_cast<std::int64_t>(operation)}, {"worker_id", kWriter}};
  line.insert(line.end(), fields.begin(), fields.end());
  base::append_json(journal, line);
  journal += '\n';
}

// Returns "2026-11-29T09:06:41.986589+00:00".
std::string time_text_of(double seconds) {
  const double whole = std::floor(seconds);
  const auto micros = std::min(static_cast<int>((seconds - whole) * 1e6), 999'999);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06d}+00:00", fmt::gmtime(static_cast<std::time_t>(whole)), micros);
}

State state_of(const tune::Result& trial, bool has_values) {
  switch (trial.status) {
    case tune::TrialStatus::terminated:
      return has_values ? State::complete : State::fail;  // Optuna has no complete trial without values
    case tune::TrialStatus::stopped:
      return State::pruned;
    case tune::TrialStatus::error:
      return State::fail;
    case tune::TrialStatus::pending:
      return trial.num_results() == 0 ? State::waiting : State::running;
    case tune::TrialStatus::running:
    case tune::TrialStatus::paused:
      break;
  }
  return State::running;
}

// Holds facts from all results of a trial, beside the last one.
struct Course {
  std::map<std::int64_t, double> intermediate = {};  // the objective by training_iteration
  double first_report = 0;                           // seconds since 1970; 0: none
  double first_duration = 0;
  double last_report = 0;
};

class OptunaJournal {
 public:
  OptunaJournal(const tune::ResultGrid& grid, const std::vector<Objective>& objectives)
      : grid_(grid), objectives_(objectives), distributions_(optuna_distributions(grid)), courses_(grid.size()) {
    grid.for_each_result([&](const tune::Result& trial, std::size_t, const Metrics& metrics) {
      add(courses_[static_cast<std::size_t>(&trial - &*grid.begin())], metrics);
    });
  }

  std::string text() {
    append_study();
    for (std::size_t i = 0; i < grid_.size(); ++i) append_trial(grid_[i], courses_[i]);
    return std::move(journal_);
  }

 private:
  void add(Course& course, const Metrics& metrics) const {
    const double time = metrics.number(loggers::result_key::timestamp).value_or(grid_.summary().started);
    if (course.first_report == 0) {
      course.first_report = time;
      course.first_duration = metrics.number(loggers::result_key::time_this_iter_s).value_or(0);
    }
    course.last_report = time;
    if (objectives_.size() != 1) return;  // Optuna has intermediate values for one objective only
    const std::optional<double> value = metrics.number(objectives_.front().name);
    const std::optional<double> step = metrics.number(loggers::result_key::training_iteration);
    if (!value || !step) return;
    course.intermediate.insert_or_assign(static_cast<std::int64_t>(*step), *value);
  }

  void append_study() {
    List directions;
    List names;
    for (const Objective& objective : objectives_) {
      directions.emplace_back(objective.mode == Mode::min ? 1 : 2);
      names.emplace_back(objective.name);
    }
    append_operation(journal_, Operation::create_study,
                     {{"study_name", grid_.summary().name}, {"directions", std::move(directions)}});
    const auto append = [&](Operation operation, const char* field, const char* key, Value value) {
      append_operation(journal_, operation, {{"study_id", 0}, {field, Dict{{key, std::move(value)}}}});
    };
    append(Operation::set_study_system_attr, "system_attr", "study:metric_names", std::move(names));
    append(Operation::set_study_user_attr, "user_attr", "cadre:path", place_text(grid_.experiment_path()));
  }

  // Returns the objectives of the last result; empty if one is no finite number.
  List values_of(const tune::Result& trial) const {
    List values;
    for (const Objective& objective : objectives_) {
      const std::optional<double> value = trial.metrics.number(objective.name);
      if (!value || !std::isfinite(*value)) return {};
      values.emplace_back(*value);
    }
    return values;
  }

  Dict user_attributes_of(const tune::Result& trial) const {
    Dict attributes{{"cadre:trial_id", trial.trial_id},
                    {"cadre:status", to_string(trial.status)},
                    {"cadre:path", place_text(trial.path)}};
    if (trial.error) attributes.emplace_back("cadre:error", *trial.error);
    for (const auto& [name, value] : loggers::flatten(trial.metrics.dict())) attributes.emplace_back(name, value);
    return attributes;
  }

  void append_trial(const tune::Result& trial, const Course& course) {
    const List values = values_of(trial);
    const State state = state_of(trial, !values.empty());
    const bool has_ended = state == State::complete || state == State::pruned || state == State::fail;
    Dict intermediate;
    for (const auto& [step, value] : course.intermediate) intermediate.emplace_back(std::to_string(step), value);
    Dict distributions;
    Dict parameters;
    for (const auto& [path, distribution] : distributions_) {
      const Value* const value = trial.config.find(path);
      if (value == nullptr) continue;
      distributions.emplace_back(path, distribution.json);
      parameters.emplace_back(path, distribution.internal(*value));
    }
    const double started =
        course.first_report == 0 ? grid_.summary().started : course.first_report - course.first_duration;
    const bool shows_values = has_ended && state != State::fail && !values.empty();
    Dict fields{{"study_id", 0},
                {"datetime_start", state == State::waiting ? Value() : Value(time_text_of(started))},
                {"state", static_cast<std::int64_t>(state)},
                {"value", shows_values && values.size() == 1 ? values.front() : Value()},
                {"values", shows_values && values.size() > 1 ? Value(values) : Value()},
                {"distributions", std::move(distributions)},
                {"params", std::move(parameters)},
                {"user_attrs", user_attributes_of(trial)},
                {"system_attrs", Dict{}},
                {"intermediate_values", std::move(intermediate)}};
    if (has_ended)
      fields.emplace_back("datetime_complete",
                          time_text_of(course.last_report == 0 ? grid_.summary().last_event : course.last_report));
    append_operation(journal_, Operation::create_trial, fields);
  }

  const tune::ResultGrid& grid_;
  const std::vector<Objective>& objectives_;
  std::map<std::string, OptunaDistribution> distributions_;
  std::vector<Course> courses_;  // by trial
  std::string journal_ = {};
};

// Throws unless the file is missing, empty, or was written here and by nobody since.
void check_replaceable(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  const std::string text = base::read_file(file);
  const std::string ours = fmt::format("\"worker_id\": \"{}\"", kWriter);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (text.substr(begin, end - begin).find(ours) == std::string::npos)
      throw InvalidArgument(fmt::format(
          "{} is there and has something that no earlier export has written: name another file, or move it away",
          file.string()));
    begin = end + 1;
  }
}

}  // namespace

void export_optuna(const tune::ResultGrid& grid, const std::vector<Objective>& objectives,
                   const std::filesystem::path& file) {
  if (objectives.empty())
    throw InvalidArgument(grid.summary().name +
                          " has no metric with a direction, which a study needs: name what counts, as --objectives "
                          "loss:min");
  check_replaceable(file);
  base::write_output_file(file, OptunaJournal(grid, objectives).text());
}

}  // namespace cadre::cli
