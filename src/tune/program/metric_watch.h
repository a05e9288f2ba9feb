// Notices programs that never report the experiment's metric.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cadre/tune/callback.h"
#include "cadre/tune/result.h"

namespace cadre::tune {

// Returns a message that no trial has reported the experiment's metric, with the last lines that one of them has
// printed. Empty if one has, or if there is no metric.
std::string missing_metric(const ResultGrid& trials);

// Says so when a time has passed, unless the experiment has ended.
class MetricWatch final : public Callback {
 public:
  static constexpr auto kPatience = std::chrono::minutes(1);

  // Calls `say` in a thread of its own.
  explicit MetricWatch(std::function<void(const std::string& message)> say, Seconds patience = kPatience);
  ~MetricWatch() override;

  void setup(const ExperimentInfo& experiment) override;
  void on_experiment_end(const TrialList& trials) override;

 private:
  void end();
  void watch();
  void look() const;

  std::function<void(const std::string&)> say_;
  Seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::filesystem::path directory_ = {};
  std::thread thread_;
};

}  // namespace cadre::tune
