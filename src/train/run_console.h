// A run's console output: reports, validations, messages and, if enabled, the workers' output. RunConfig::verbose 0
// suppresses all but failures. Control characters are escaped.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/display_text.h"
#include "cadre/train.h"
#include "engine/engine.h"
#include "train/events.h"
#include "view/output.h"
#include "view/worker_output.h"

namespace cadre::train {

class RunConsole {
 public:
  using Time = engine::Engine::Clock::time_point;

  RunConsole(std::filesystem::path directory, const RunConfig& config, Time began)
      : directory_(std::move(directory)),
        config_(config),
        began_(began),
        is_quiet_(config.verbose == 0 || view::host_shows_progress()) {}

  // Prints a line to stdout.
  void say(const std::string& text) const;
  // Prints a failure to stderr, whatever `verbose` is; other lines as above.
  void say(const Say& what) const;
  void show(const ShowResult& result, Time now) const;
  void show(const ShowValidation& validation, Time now) const;

  // Starts watching the output of a new group of so many ranks.
  void watch_workers(std::int64_t ranks, Time now);
  // Prints the output since the last call; `last`: all workers have ended.
  void show_worker_output(bool last, Time now);
  // Returns when show_worker_output() is due next; empty: never.
  const std::optional<Time>& worker_output_due() const { return worker_output_due_; }

 private:
  std::string seconds_at(Time now) const;
  void print(const view::WorkerOutput::Text& text) const;
  std::string shown(const std::string& text) const;

  std::filesystem::path directory_;  // of the run
  const RunConfig& config_;
  Time began_;
  bool is_quiet_;
  base::Encoding encoding_ = base::encoding_of_environment();
  view::WorkerOutput worker_output_;
  std::optional<Time> worker_output_due_;
};

}  // namespace cadre::train
