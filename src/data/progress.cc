#include "data/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace cadre::data {
namespace {

std::string readable_bytes(std::int64_t bytes) {
  if (bytes < (1 << 20)) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

OperatorProgress::OperatorProgress(std::string name, std::int64_t workers, ExecutionProgress& all)
    : name_(std::move(name)), workers_(workers), all_(all) {}

void OperatorProgress::count(std::int64_t rows, std::int64_t bytes) {
  rows_ += rows;
  bytes_ += bytes;
}

void OperatorProgress::hold(std::int64_t bytes) { all_.hold(bytes); }

OperatorStats OperatorProgress::stats() const {
  return {.name = name_,
          .tasks = tasks_,
          .rows = rows_,
          .bytes = bytes_,
          .busy_s = static_cast<double>(busy_ns_) * 1e-9,
          .workers = workers_,
          .skipped = skipped()};
}

void OperatorProgress::skip(const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (skipped_++ == 0) skipped_error_ = error;
}

std::int64_t OperatorProgress::skipped() const {
  const std::lock_guard lock(mutex_);
  return skipped_;
}

std::string OperatorProgress::report_of_skipped() const {
  const std::lock_guard lock(mutex_);
  if (skipped_ == 0) return "";
  return fmt::format("cadre: {} has left out {} files or rows that cannot be read; one: {}", name_, skipped_,
                     skipped_error_);
}

ExecutionProgress::ExecutionProgress(std::string name, std::int64_t limit_bytes, bool shows_bars)
    : name_(std::move(name)), limit_bytes_(limit_bytes), shows_bars_(shows_bars) {}

ExecutionProgress::~ExecutionProgress() {
  if (lines_ > 0) draw();
}

std::shared_ptr<OperatorProgress> ExecutionProgress::add(const std::string& name, std::int64_t workers) {
  return operators_.emplace_back(std::make_shared<OperatorProgress>(name, workers, *this));
}

void ExecutionProgress::hold(std::int64_t bytes) {
  const std::int64_t now = held_bytes_ += bytes;
  std::int64_t peak = peak_bytes_;
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
}

ExecutionStats ExecutionProgress::stats() const {
  ExecutionStats stats{.wall_s = std::chrono::duration<double>(Clock::now() - began_).count(),
                       .peak_bytes = peak_bytes_,
                       .memory_limit_bytes = limit_bytes_};
  for (const auto& one : operators_) stats.operators.push_back(one->stats());
  return stats;
}

void ExecutionProgress::report_skipped() const {
  for (const auto& one : operators_) {
    if (const std::string report = one->report_of_skipped(); !report.empty())
      std::fprintf(stderr, "%s\n", report.c_str());
  }
}

void ExecutionProgress::show() {
  constexpr auto kPause = std::chrono::milliseconds(100);
  if (!shows_bars_ || Clock::now() - shown_ < kPause) return;
  shown_ = Clock::now();
  draw();
}

// Draws over the previous output.
void ExecutionProgress::draw() {
  std::string text = lines_ > 0 ? fmt::format("\x1b[{}A", lines_) : "";
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  text += fmt::format("\x1b[2K{}: {:.1f} s, {} of {} held\n", name_.empty() ? "dataset" : name_, seconds,
                      readable_bytes(held_bytes_), readable_bytes(limit_bytes_));
  for (const auto& one : operators_) {
    const OperatorStats stats = one->stats();
    text += fmt::format("\x1b[2K  {:<32} {:>8} tasks {:>12} rows {:>12}  {:>10.0f} rows/s\n", stats.name, stats.tasks,
                        stats.rows, readable_bytes(stats.bytes), static_cast<double>(stats.rows) / seconds);
  }
  lines_ = operators_.size() + 1;
  std::fputs(text.c_str(), stderr);
}

std::string to_string(const ExecutionStats& stats) {
  std::string text = fmt::format("{:<32} {:>7} {:>8} {:>12} {:>12} {:>9}\n", "operator", "workers", "tasks", "rows",
                                 "bytes", "busy s");
  for (const OperatorStats& one : stats.operators) {
    text += fmt::format("{:<32} {:>7} {:>8} {:>12} {:>12} {:>9.3f}\n", one.name, one.workers, one.tasks, one.rows,
                        readable_bytes(one.bytes), one.busy_s);
    if (one.skipped > 0) text += fmt::format("  {} files or rows that cannot be read were left out\n", one.skipped);
  }
  return text + fmt::format("{:.3f} s; at most {} of {} held\n", stats.wall_s, readable_bytes(stats.peak_bytes),
                            readable_bytes(stats.memory_limit_bytes));
}

}  // namespace cadre::data
