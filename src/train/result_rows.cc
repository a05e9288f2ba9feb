#include "train/result_rows.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "loggers/amendments.h"
#include "loggers/result_keys.h"

namespace cadre::train {

namespace result_key = loggers::result_key;
namespace {

// Returns what validations have found as entries of a row.
Dict entries_of(const Metrics& validated) {
  return validated.empty() ? Dict() : Dict{{"validation", validated.dict()}};
}

}  // namespace

Metrics with_validation(const Metrics& reported, const Metrics& validated) {
  return Metrics(loggers::amended(reported.dict(), entries_of(validated)));
}

// Reports are numbered from 1, and each that counts has a row.
std::optional<Amendment> amendment_of(const ShowValidation& validation) {
  if (validation.validated.empty()) return std::nullopt;
  Amendment more{.number = static_cast<std::size_t>(validation.step - 1), .values = entries_of(validation.validated)};
  for (const std::string_view key : {result_key::timesteps_total, result_key::training_iteration}) {
    if (const Value* const value = validation.reported.find(key)) more.row.emplace_back(key, *value);
  }
  if (find_entry(more.row, result_key::training_iteration) == nullptr)
    more.row.emplace_back(result_key::training_iteration, validation.step);
  return more;
}

std::optional<Dict> ResultRows::add(const Event& event, const Actions& actions, double time) {
  if (const auto* started = std::get_if<ControllerStarted>(&event)) hostname_ = started->hostname;
  if (std::holds_alternative<GroupBegan>(event)) iteration_began_ = time;
  if (const auto* report = std::get_if<GroupReported>(&event)) {
    const double measured = std::max(0.0, time - iteration_began_);  // the clock may have been set back
    time_this_iter_s_ = report->metrics.number(result_key::time_this_iter_s).value_or(measured);
    life_.time_s += time_this_iter_s_;
    ++life_.iterations;
  }
  std::optional<Dict> row;
  for (const Action& action : actions) {
    if (const auto* result = std::get_if<ShowResult>(&action)) {
      time_total_s_ += time_this_iter_s_;
      row = row_of(*result, time);
    }
    if (std::holds_alternative<AnswerGroup>(action)) iteration_began_ = time;  // ranks waited in report() until now
    if (std::holds_alternative<LaunchGroup>(action)) life_ = {};
  }
  return row;
}

// Source: the auto-filled keys of Ray Tune's function API, in the same order.
Dict ResultRows::row_of(const ShowResult& result, double time) const {
  Dict row = result.metrics.dict();
  const auto add = [&](std::string_view key, Value value) {
    if (find_entry(row, key) == nullptr) row.emplace_back(key, std::move(value));
  };
  add(result_key::timestamp, static_cast<std::int64_t>(time));
  add(result_key::training_iteration, result.step);
  add(result_key::date, base::date_text(time));
  add(result_key::time_this_iter_s, time_this_iter_s_);
  add(result_key::time_total_s, time_total_s_);
  add(result_key::hostname, hostname_);
  add(result_key::time_since_restore, life_.time_s);
  add(result_key::iterations_since_restore, life_.iterations);
  add(result_key::checkpoint_dir_name,
      result.checkpoint_dir_name.empty() ? Value() : Value(result.checkpoint_dir_name));
  return row;
}

}  // namespace cadre::train
