#include "tune/console/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/clock.h"
#include "view/output.h"
#include "view/terminal.h"

namespace cadre::tune {

using namespace console;

namespace {

// On a terminal, the pause between two drawings is at least kShortestPause and kPausePerCost times the duration of a
// drawing. Without changes a drawing comes every kHeartbeat, so that the time shown goes on.
constexpr auto kShortestPause = std::chrono::milliseconds(200);
constexpr int kPausePerCost = 50;
constexpr auto kHeartbeat = std::chrono::seconds(1);
// The period of blocks elsewhere.
constexpr auto kPlainPeriod = std::chrono::seconds(30);
constexpr auto kOutputPeriod = std::chrono::milliseconds(100);
constexpr auto kMemoryPeriod = std::chrono::seconds(1);

constexpr std::size_t kMostRowsAtTheEnd = 1000;
constexpr std::size_t kMostFailuresAtTheEnd = 100;
constexpr std::size_t kFewestLinesOfTables = view::kTableFrameLines + 6;  // at the end, however low the window is
constexpr std::size_t kLargestLog = std::size_t{1} << 20;                 // bytes to buffer for a stopped terminal
constexpr std::size_t kPlainWidth = 120;
// In a large window the block leaves these lines to the log and the cursor.
constexpr std::size_t kLinesForOthers = 3;
constexpr std::size_t kLinesOfALargeWindow = 12;

}  // namespace

Console::Console(const Experiment& experiment, const RunningTime& running_time, std::string directory,
                 const TuneConfig& config, int verbose, bool log_to_driver)
    : experiment_(experiment),
      running_time_(running_time),
      directory_(std::move(directory)),
      focus_(focus_of(config)),
      detail_{verbose, static_cast<std::int64_t>(experiment.trials().size()) + experiment.trials_to_come(),
              config.metric.name, base::encoding_of_environment(), &said_errors_},
      live_(verbose > 0 && view::is_live_terminal()),
      shows_output_(verbose > 0 && log_to_driver),
      screen_(view::styles_are_wanted()) {}

Console::~Console() {
  if (live_ && !log_.empty()) draw(true);
}

void Console::begin(const std::string& experiment_name, bool restored) {
  say(fmt::format("{} experiment {}: {} {}\nResults in {}\n", restored ? "Continuing" : "Running",
                  base::printable(experiment_name, detail_.encoding), detail_.trials,
                  detail_.trials == 1 ? "trial" : "trials", base::printable(directory_, detail_.encoding)));
  begun_ = true;
  refreshed_ = Clock::now();
  if (!live_) pause_ = kPlainPeriod;
}

void Console::say(const std::string& text) {
  if (detail_.verbose == 0) return;
  const std::string lines = base::printable_lines(text, detail_.encoding) + '\n';
  if (live_) {
    log_ += lines;
  } else {
    view::print(lines);
  }
}

void Console::say_now(const std::string& text) {
  say(text);
  if (live_) draw(false);
}

void Console::show(const Action& action) {
  if (shows_output_) show_output_of(action);
  const std::string text = log_text(action, experiment_, directory_, detail_);
  if (text.empty()) return;
  if (detail_.verbose > 0) return say(text);
  view::print_error(base::printable_lines(text, detail_.encoding) + '\n');
}

void Console::tick(Clock::time_point now) {
  if (!output_.empty() && now >= output_due_) {
    show_output(output_.take());
    output_due_ = now + kOutputPeriod;
  }
  const std::optional<Clock::time_point> due = next_block();
  if (due && now >= *due) {
    refresh();
  } else if (live_ && !log_.empty()) {
    draw(false);
  }
}

std::optional<Console::Clock::time_point> Console::next_tick() const {
  std::optional<Clock::time_point> due = next_block();
  if (!output_.empty() && (!due || output_due_ < *due)) due = output_due_;
  return due;
}

std::optional<Console::Clock::time_point> Console::next_block() const {
  if (detail_.verbose == 0 || !begun_) return std::nullopt;
  if (changed_) return refreshed_ + pause_;
  if (!live_) return std::nullopt;
  return refreshed_ + std::max<Clock::duration>(pause_, kHeartbeat);
}

// ---- Output of workers

std::string Console::label_of(TrialIndex trial) const { return "trial " + experiment_.trials().at(trial).id; }

void Console::worker_ended(TrialIndex trial) {
  if (shows_output_) show_output(output_.end(label_of(trial)));
}

// Shows the output of a trial before the line about its end.
void Console::show_output_of(const Action& action) {
  if (const auto* launch = std::get_if<Launch>(&action)) {
    output_.watch(label_of(launch->trial),
                  std::filesystem::path(directory_) / experiment_.trials().at(launch->trial).directory);
  } else if (const auto* error = std::get_if<LogError>(&action)) {
    show_output(output_.take(label_of(error->trial)));
  } else if (const auto* ended = std::get_if<LogEnd>(&action)) {
    show_output(output_.take(label_of(ended->trial)));
  }
}

void Console::show_output(const view::WorkerOutput::Text& text) {
  const std::string out = base::printable_lines(text.out, detail_.encoding);
  const std::string err = base::printable_lines(text.err, detail_.encoding);
  if (live_) {
    log_.append(out).append(err);
  } else {
    view::print(out);
    view::print_error(err);
  }
}

void Console::end() {
  if (detail_.verbose == 0) return;
  begun_ = false;
  window_ = live_ ? view::window_size() : view::WindowSize{.columns = kPlainWidth + 1};
  const Page page{
      .width = window_.columns - 1, .rows = kMostRowsAtTheEnd, .ranked = true, .encoding = detail_.encoding};
  format_block(page, true);
  if (live_) {
    view::write_to_terminal(screen_.finish(window_, std::exchange(log_, {}), std::exchange(block_, {})));
  } else {
    print_block();
  }
  if (const std::string failed = failures(); !failed.empty()) say((live_ ? "\n" : "") + failed);
  if (live_ && !log_.empty()) draw(true);
}

void Console::refresh() {
  const Clock::time_point began = Clock::now();
  if (live_) {
    format_live_block();
    draw(false);
  } else {
    format_block({.width = kPlainWidth, .encoding = detail_.encoding}, true);
    print_block();
  }
  changed_ = false;
  refreshed_ = Clock::now();
  pause_ = live_ ? std::max<Clock::duration>(kShortestPause, kPausePerCost * (refreshed_ - began)) : kPlainPeriod;
}

// Formats the block for the present window size. Reuses the tables if only the time has changed.
void Console::format_live_block() {
  const bool resized = std::exchange(window_, view::window_size()) != window_;
  const std::size_t others = window_.lines >= kLinesOfALargeWindow ? kLinesForOthers : 1;
  const Page page{.width = std::max<std::size_t>(window_.columns, 2) - 1,
                  .lines = std::max(window_.lines, others + 1) - others,
                  .encoding = detail_.encoding};
  format_block(page, changed_ || resized);
}

void Console::format_block(Page page, bool with_tables) {
  const ExperimentView view = view_of(experiment_);
  const Moment now = moment();
  if (with_tables) overview_ = overview_of(view, focus_);
  block_ = format_summary(view, overview_, focus_, now, page);
  if (with_tables) {
    if (page.lines) {
      *page.lines -= block_.size();
    } else if (live_) {  // the last block: what fits below the summary, which is whole
      page.lines = std::max(window_.lines, block_.size() + kFewestLinesOfTables + 1) - block_.size() - 1;
    }
    tables_ = format_tables(view, overview_, focus_, now.wall_seconds, page);
  }
  block_.insert(block_.end(), tables_.begin(), tables_.end());
}

// Draws the log and the block. Without `wait`, postpones that while the terminal is stopped, unless the log is too
// large.
void Console::draw(bool wait) {
  if (!wait && log_.size() < kLargestLog && !view::is_writable()) return;
  if (begun_ && view::window_size() != window_) format_live_block();
  view::write_to_terminal(screen_.draw(window_, log_, block_));
  log_.clear();
}

void Console::print_block() const {
  std::string text = "\n";
  for (const view::Line& line : block_) text.append(view::plain_text(line)).append("\n");
  view::print(text + "\n");
}

Moment Console::moment() {
  if (const Clock::time_point now = Clock::now(); now >= memory_read_ + kMemoryPeriod) {
    memory_ = resources::memory_usage();
    memory_read_ = now;
  }
  const double now = base::wall_seconds();
  return {.wall_seconds = now,
          .running_seconds = running_time_.seconds_at(now),
          .sessions = running_time_.sessions(),
          .is_paused = running_time_.is_paused(),
          .memory = memory_};
}

std::string Console::failures() const {
  std::vector<std::vector<const Trial*>> reasons;
  std::map<std::string, std::size_t> places;
  std::size_t count = 0;
  for (const Trial& trial : experiment_.trials()) {
    if (trial.status != TrialStatus::error) continue;
    ++count;
    const auto [place, is_new] = places.emplace(reason_of(trial, trial.error), reasons.size());
    if (is_new) reasons.emplace_back();
    reasons[place->second].push_back(&trial);
  }
  if (count == 0) return {};
  std::string text = fmt::format("Number of errored trials: {}", count);
  std::size_t left = count;
  for (const auto& trials : reasons | std::views::take(kMostFailuresAtTheEnd)) {
    text += "\n" + errors_text(trials, directory_, detail_.encoding);
    left -= trials.size();
  }
  return left == 0 ? text : text + fmt::format("\n... {} more", left);
}

}  // namespace cadre::tune
