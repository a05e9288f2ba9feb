#include "train/run_console.h"

#include <fmt/format.h>

#include "base/native_stack.h"
#include "train/assignment.h"
#include "train/validator.h"
#include "view/output.h"

namespace cadre::train {
namespace {

// Interval between checks of the workers' output.
constexpr auto kOutputPeriod = std::chrono::milliseconds(100);

// Formats a number for reading: five significant digits.
std::string to_text(const Value& value) {
  if (value.is_number() && !value.is_integer()) return fmt::format("{:.5g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : to_json(value);
}

// " loss=0.1 accuracy=0.9"
std::string to_text(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format(" {}={}", name, to_text(value));
  return text;
}

}  // namespace

void RunConsole::say(const std::string& text) const {
  if (is_quiet_) return;
  view::print(shown(text) + "\n");
}

void RunConsole::say(const Say& what) const {
  if (!what.failure) return say(what.text);
  view::print_error(shown(what.text) + "\n");
}

std::string RunConsole::shown(const std::string& text) const {
  return base::printable_lines(base::without_native_stacks(text), encoding_);
}

void RunConsole::show(const ShowResult& result, Time now) const {
  say(fmt::format("{}  report {}:{}{}", seconds_at(now), result.step, to_text(result.metrics),
                  result.checkpoint.empty() ? "" : "  " + result.checkpoint));
}

void RunConsole::show(const ShowValidation& validation, Time now) const {
  const std::string begin = fmt::format("{}  report {}, {}: ", seconds_at(now), validation.step, validation.checkpoint);
  if (validation.status == ReportedCheckpointStatus::committed)
    return say(begin + "not validated, because a later one is");
  if (validation.error.empty()) return say(begin + to_string(validation.status) + ":" + to_text(validation.validated));
  say(fmt::format("{}{}: {}\nWhat the validator has printed is in {}", begin, to_string(validation.status),
                  validation.error, directory_of_validator(directory_, validation.checkpoint).string()));
}

std::string RunConsole::seconds_at(Time now) const {
  return fmt::format("{:8.1f} s", std::chrono::duration<double>(now - began_).count());
}

void RunConsole::watch_workers(std::int64_t ranks, Time now) {
  show_worker_output(true, now);
  if (is_quiet_ || !config_.logging_config.log_to_driver) return;
  for (Rank rank = 0; rank < ranks; ++rank)
    worker_output_.watch(fmt::format("rank {}", rank), directory_ / directory_of_rank(rank));
  worker_output_due_ = now + kOutputPeriod;
}

void RunConsole::show_worker_output(bool last, Time now) {
  print(last ? worker_output_.end_all() : worker_output_.take());
  worker_output_due_.reset();
  if (!last) worker_output_due_ = now + kOutputPeriod;
}

void RunConsole::print(const view::WorkerOutput::Text& text) const {
  view::print(base::printable_lines(text.out, encoding_));
  view::print_error(base::printable_lines(text.err, encoding_));
}

}  // namespace cadre::train
