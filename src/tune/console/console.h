// What a person sees of a running experiment. On a terminal: a status block that is drawn in place, with log lines
// scrolling above it. Elsewhere: the same log lines, and the block now and then. Used by the controller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "run/worker_output.h"
#include "tune/console/log_lines.h"
#include "tune/console/screen.h"
#include "tune/console/status_block.h"
#include "tune/experiment.h"
#include "tune/running_time.h"

namespace cadre::tune {

class Console {
 public:
  using Clock = std::chrono::steady_clock;

  // Everything goes to standard output. With `verbose` 0 only failures for good are told, on standard error.
  // With `log_to_driver` also what workers print, see RunConfig. The experiment and its running time must outlive the
  // console.
  Console(const Experiment& experiment, const RunningTime& running_time, std::string directory,
          const TuneConfig& config, int verbose, bool log_to_driver = false);
  // Leaves the last block where it is, below everything that was said.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // The experiment begins, or goes on. What is said before is merely logged.
  void begin(const std::string& experiment_name, bool restored);
  // A text for the log, of one or more lines. On a terminal it is shown with the next tick().
  void say(const std::string& text);
  // The same, shown at once: for somebody who then waits and does not tick.
  void say_now(const std::string& text);
  // Something that was done; most actions are not worth a line.
  void show(const Action& action);
  // A trial's worker has ended: what it has printed is all there.
  void worker_ended(TrialIndex trial);
  // The experiment's state is another one.
  void changed() { changed_ = true; }
  // After each turn: draws what is due. Cheap when nothing is.
  void tick(Clock::time_point now);
  // When the next tick() has something to do by itself.
  std::optional<Clock::time_point> next_tick() const;
  // The last block, with all trials, and the failures.
  void end();

 private:
  std::optional<Clock::time_point> next_block() const;
  void refresh();
  void show_output(const run::WorkerOutput::Text& text);
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
  bool live_;  // on a terminal
  bool shows_output_;
  run::WorkerOutput output_ = {};
  Clock::time_point output_due_ = {};
  console::Screen screen_;

  bool begun_ = false;
  bool changed_ = true;
  std::string log_ = {};  // on a terminal: what is not shown yet, in whole lines
  console::WindowSize window_ = {};
  console::Overview overview_ = {};
  console::Lines tables_ = {};
  console::Lines block_ = {};  // the summary, and these tables
  std::optional<run::MemoryUsage> memory_ = {};
  Clock::time_point memory_read_ = {};
  Clock::time_point refreshed_ = {};
  Clock::duration pause_ = {};  // after that, until the block may be made anew
};

}  // namespace cadre::tune
