#include "tune/program/metric_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cadre/error.h"
#include "engine/local/last_output.h"
#include "tune/console/status_block.h"

namespace cadre::tune {
namespace {

// A metric may be in a few results only.
bool has_been_reported(const std::string& metric, const ResultGrid& trials) {
  bool is_there = std::ranges::any_of(trials, [&](const Result& trial) { return trial.metrics.contains(metric); });
  if (is_there) return true;
  trials.for_each_result([&](const Result&, std::size_t, const Metrics& one) { is_there |= one.contains(metric); });
  return is_there;
}

// Returns the end of what the first trial that printed anything has printed.
std::string some_output(const ResultGrid& trials) {
  for (const Result& trial : trials) {
    std::string text;
    for (const char* name : {"stderr", "stdout"}) {
      const std::string output = engine::local::last_output(trial.path / name, 0);
      if (!output.empty()) text += fmt::format("\nthe end of {} of trial {}:\n{}", name, trial.trial_id, output);
    }
    if (!text.empty()) return text;
  }
  return "\nno trial has printed anything";
}

}  // namespace

std::string missing_metric(const ResultGrid& trials) {
  const std::string& metric = trials.summary().metric;
  if (metric.empty() || has_been_reported(metric, trials)) return {};
  return fmt::format("no trial has reported \"{}\", the experiment's metric{}", metric, some_output(trials));
}

MetricWatch::MetricWatch(std::function<void(const std::string&)> say, Seconds patience)
    : say_(std::move(say)), patience_(patience), thread_([this] { watch(); }) {}

MetricWatch::~MetricWatch() {
  end();
  thread_.join();
}

void MetricWatch::setup(const ExperimentInfo& experiment) {
  const std::lock_guard lock(mutex_);
  directory_ = experiment.path;
}

void MetricWatch::on_experiment_end(const TrialList&) { end(); }

void MetricWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
}

void MetricWatch::watch() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience_, [this] { return is_over_; })) look();
}

void MetricWatch::look() const {
  try {
    const std::string message = missing_metric(ResultGrid::from_directory(directory_));
    if (!message.empty()) say_("after " + console::duration_text(patience_.count()) + " " + message);
  } catch (const Error&) {  // the experiment is only just being made
  }
}

}  // namespace cadre::tune
