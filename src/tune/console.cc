#include "tune/console.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>

#include "tune/loggers/progress_csv.h"

namespace cadre::tune {
namespace {

constexpr auto kPeriod = std::chrono::seconds(5);
constexpr std::size_t kRowsWhileRunning = 20;
constexpr std::size_t kMetricColumns = 4;
constexpr std::size_t kWidestCell = 20;

// Keys of every result, which say nothing about how well a trial does.
constexpr std::array<std::string_view, 14> kOrdinaryKeys = {"training_iteration",
                                                            "time_total_s",
                                                            "timestamp",
                                                            "trial_id",
                                                            "date",
                                                            "time_this_iter_s",
                                                            "pid",
                                                            "hostname",
                                                            "node_ip",
                                                            "done",
                                                            "time_since_restore",
                                                            "iterations_since_restore",
                                                            "checkpoint_dir_name",
                                                            "should_checkpoint"};

std::string cell(const Value* value) {
  if (value == nullptr || value->is_null()) return "";
  if (value->is_double()) return fmt::format("{:.6g}", value->get<double>());
  std::string text = value->is_string() ? value->get<std::string>() : to_json(*value);
  if (text.size() > kWidestCell) text = "..." + text.substr(text.size() - (kWidestCell - 3));
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 60) return fmt::format("{:.1f}s", seconds);
  if (whole < 3600) return fmt::format("{}min {}s", whole / 60, whole % 60);
  return fmt::format("{}hr {}min {}s", whole / 3600, whole / 60 % 60, whole % 60);
}

// Columns as wide as their content, numbers to the right.
std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i)
      line += i < 2 ? fmt::format("{:<{}}  ", rows[r][i], widths[i]) : fmt::format("{:>{}}  ", rows[r][i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) {
      std::string rule;
      for (const std::size_t width : widths) rule += std::string(width, '-') + "  ";
      text += rule.substr(0, rule.size() - 2) + "\n";
    }
  }
  return text;
}

// The numbers that the trials report, those first that come first.
std::vector<std::string> metric_names(const std::vector<Trial>& trials, const std::string& first) {
  std::vector<std::string> names;
  if (!first.empty()) names.push_back(first);
  for (const Trial& trial : trials) {
    for (const auto& [name, value] : flatten(trial.last_result.dict())) {
      const bool ordinary = std::ranges::find(kOrdinaryKeys, name) != kOrdinaryKeys.end();
      if (names.size() < kMetricColumns && value.is_number() && !ordinary &&
          std::ranges::find(names, name) == names.end() && !trial.config.contains(name))
        names.push_back(name);
    }
    if (trial.index > 100) break;  // enough to know them
  }
  return names;
}

}  // namespace

Console::Console(const Experiment& experiment, std::string directory, std::string metric, Mode mode, int verbose)
    : experiment_(experiment),
      directory_(std::move(directory)),
      metric_(std::move(metric)),
      mode_(mode),
      silent_(verbose <= 0) {}

void Console::begin(const std::string& experiment_name, std::int64_t trials, bool restored) {
  began_ = Clock::now();
  next_ = began_ + kPeriod;
  if (silent_) return;
  fmt::print("{} experiment {}: {} {}\nResults in {}\n\n", restored ? "Continuing" : "Running", experiment_name, trials,
             trials == 1 ? "trial" : "trials", directory_);
  std::fflush(stdout);
}

void Console::say(const std::string& text) {
  if (silent_) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Console::tick(Clock::time_point now) {
  if (silent_ || now < next_) return;
  next_ = now + kPeriod;
  print_status(false);
}

std::optional<Console::Clock::time_point> Console::next_tick() const {
  return silent_ ? std::nullopt : std::optional(next_);
}

void Console::end() {
  if (silent_) return;
  print_status(true);
  std::string errors;
  for (const Trial& trial : experiment_.trials()) {
    if (trial.status == TrialStatus::error)
      errors += fmt::format("  {}: {}\n      {}/{}/error.txt\n", trial.id,
                            trial.error.substr(0, trial.error.find('\n')), directory_, trial.directory);
  }
  if (!errors.empty()) fmt::print("Trials that failed:\n{}\n", errors);
  std::fflush(stdout);
}

void Console::print_status(bool final) const {
  std::map<TrialStatus, std::int64_t> counts;
  for (const Trial& trial : experiment_.trials()) ++counts[trial.status];
  counts[TrialStatus::pending] += experiment_.trials_to_come();
  std::string statuses;
  for (const auto& [status, count] : counts) {
    if (count > 0) statuses += fmt::format("{}{} {}", statuses.empty() ? "" : " | ", count, to_string(status));
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
  const std::time_t now = std::time(nullptr);
  fmt::print("\nTrial status: {}\nCurrent time: {:%Y-%m-%d %H:%M:%S}. Total running time: {}\n", statuses,
             fmt::localtime(now), duration(elapsed));
  fmt::print("Logical resource usage: {}\n{}\n{}{}\n", experiment_.resource_usage(), experiment_.scheduler_state(),
             best_trial(), table(final));
  std::fflush(stdout);
}

std::string Console::best_trial() const {
  if (metric_.empty()) return {};
  const Trial* best = nullptr;
  double best_value = 0;
  for (const Trial& trial : experiment_.trials()) {
    const Value* value = trial.last_result.find(metric_);
    if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) continue;
    const auto number = value->get<double>();
    if (best == nullptr || (mode_ == Mode::max ? number > best_value : number < best_value)) {
      best = &trial;
      best_value = number;
    }
  }
  if (best == nullptr) return {};
  Dict sampled;
  for (const auto& [path, value] : best->sampled) sampled.emplace_back(path, best->config.at(path));
  return fmt::format("Current best trial: {} with {}={:.6g} and params={}\n", best->id, metric_, best_value,
                     to_json(sampled));
}

std::string Console::table(bool final) const {
  const std::vector<Trial>& trials = experiment_.trials();
  if (trials.empty()) return {};
  const std::vector<std::string> metrics = metric_names(trials, metric_);
  std::vector<std::string> head{"Trial", "status"};
  for (const auto& [path, value] : trials.front().sampled) head.push_back(path);
  head.insert(head.end(), {"iter", "total time (s)"});
  head.insert(head.end(), metrics.begin(), metrics.end());

  std::vector<std::vector<std::string>> rows{head};
  std::map<TrialStatus, std::size_t> hidden;
  for (const Trial& trial : trials) {
    if (!final && rows.size() > kRowsWhileRunning) {
      ++hidden[trial.status];
      continue;
    }
    std::vector<std::string> row{trial.id, to_string(trial.status)};
    for (const auto& [path, value] : trials.front().sampled) row.push_back(cell(trial.config.find(path)));
    row.push_back(cell(trial.last_result.find("training_iteration")));
    row.push_back(cell(trial.last_result.find("time_total_s")));
    for (const std::string& name : metrics) row.push_back(cell(trial.last_result.find(name)));
    rows.push_back(std::move(row));
  }
  std::string text = align(rows);
  for (const auto& [status, count] : hidden) text += fmt::format("... {} more {}\n", count, to_string(status));
  return text;
}

}  // namespace cadre::tune
