// What a person sees of a running experiment: lines as things happen, a status table every few seconds and at the end.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tune/experiment.h"

namespace cadre::tune {

class Console {
 public:
  using Clock = std::chrono::steady_clock;

  // Everything goes to standard output; nothing does when `verbose` is 0.
  Console(const Experiment& experiment, std::string directory, std::string metric, Mode mode, int verbose);

  void begin(const std::string& experiment_name, std::int64_t trials, bool restored);
  void say(const std::string& text);
  // The status table, when it is due.
  void tick(Clock::time_point now);
  std::optional<Clock::time_point> next_tick() const;
  void end();

 private:
  void print_status(bool final) const;
  std::string best_trial() const;
  std::string table(bool final) const;

  const Experiment& experiment_;
  std::string directory_;
  std::string metric_;
  Mode mode_;
  bool silent_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_ = began_;
};

}  // namespace cadre::tune
