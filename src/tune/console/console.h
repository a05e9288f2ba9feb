// The console output of a running experiment. On a terminal: a status block that is drawn in place, with log lines
// scrolling above it. Elsewhere: the same log lines, and the block from time to time. Used by the controller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tune/console/log_lines.h"
#include "tune/console/status_block.h"
#include "tune/experiment.h"
#include "tune/running_time.h"
#include "view/screen.h"
#include "view/worker_output.h"

namespace cadre::tune {

class Console {
 public:
  using Clock = std::chrono::steady_clock;

  // Writes to standard output. With `verbose` 0 writes only final failures, to standard error. With `log_to_driver`
  // also shows the workers' output, see RunConfig. The experiment and its running time must outlive the console.
  Console(const Experiment& experiment, const RunningTime& running_time, std::string directory,
          const TuneConfig& config, int verbose, bool log_to_driver = false);
  // Leaves the last block in its place, below all log lines.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Begins or continues the experiment: from now on a block is shown. Before that, say() only logs.
  void begin(const std::string& experiment_name, bool restored);
  // Logs a text of one or more lines. On a terminal it is shown with the next tick().
  void say(const std::string& text);
  // Like say(), but shows the text at once: for a caller that then waits without calling tick().
  void say_now(const std::string& text);
  // Logs an action that was carried out; most actions have no line.
  void show(const Action& action);
  // Shows the remaining output of a worker that has ended.
  void worker_ended(TrialIndex trial);
  // Marks the experiment's state as changed.
  void changed() { changed_ = true; }
  // Draws if a drawing is due. Call it after each turn; it is cheap if nothing is due.
  void tick(Clock::time_point now);
  // Returns the time of the next drawing or output.
  std::optional<Clock::time_point> next_tick() const;
  // Shows the last block, with the best trials first and on a terminal as many as fit, and the failures.
  void end();

 private:
  std::optional<Clock::time_point> next_block() const;
  void refresh();
  void show_output(const view::WorkerOutput::Text& text);
  void show_output_of(const Action& action);
  std::string label_of(TrialIndex trial) const;
  void format_live_block();
  void format_block(console::Page page, bool with_tables);
  void draw(bool wait);
  void print_block() const;
  console::Moment moment();
  std::string failures() const;

  const Experiment& experiment_;
  const RunningTime& running_time_;
  std::string directory_;
  console::Focus focus_;
  std::map<std::string, std::string> said_errors_ = {};
  console::LogDetail detail_;
  bool live_;  // true: on a terminal
  bool shows_output_;
  view::WorkerOutput output_ = {};
  Clock::time_point output_due_ = {};
  view::Screen screen_;

  bool begun_ = false;
  bool changed_ = true;
  std::string log_ = {};  // on a terminal: whole lines that are not shown yet
  view::WindowSize window_ = {};
  console::Overview overview_ = {};
  view::Lines tables_ = {};
  view::Lines block_ = {};  // the summary and the tables
  std::optional<resources::MemoryUsage> memory_ = {};
  Clock::time_point memory_read_ = {};
  Clock::time_point refreshed_ = {};
  Clock::duration pause_ = {};  // minimum time until the block is formatted again
};

}  // namespace cadre::tune
