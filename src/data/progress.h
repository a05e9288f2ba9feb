// The progress of an execution's operators, for statistics and for the terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"

namespace cadre::data {

class ExecutionProgress;

// The progress of one operator. Thread-safe.
class OperatorProgress {
 public:
  OperatorProgress(std::string name, std::int64_t workers, ExecutionProgress& all);

  void count_task() { ++tasks_; }
  void count(std::int64_t rows, std::int64_t bytes);
  void hold(std::int64_t bytes);  // negative: releases them
  // Counts a file or row that is left out because of this error.
  void skip(const std::string& error);
  OperatorStats stats() const;
  // Returns a line about what was left out; empty: nothing was.
  std::string report_of_skipped() const;

  // Counts the time in which a thread works, from its construction to its destruction.
  class Busy {
   public:
    explicit Busy(OperatorProgress& progress) : progress_(progress) {}
    ~Busy() { progress_.add_busy(Clock::now() - began_); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    OperatorProgress& progress_;
    std::chrono::steady_clock::time_point began_ = Clock::now();
  };
  // Subtracts the time in which the thread waits for memory, during a Busy.
  class Idle {
   public:
    explicit Idle(OperatorProgress& progress) : progress_(progress) {}
    ~Idle() { progress_.add_busy(began_ - Clock::now()); }
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;

   private:
    OperatorProgress& progress_;
    std::chrono::steady_clock::time_point began_ = Clock::now();
  };

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t skipped() const;
  void add_busy(Clock::duration time) { busy_ns_ += std::chrono::nanoseconds(time).count(); }

  const std::string name_;
  const std::int64_t workers_;
  ExecutionProgress& all_;
  std::atomic<std::int64_t> tasks_ = 0;
  std::atomic<std::int64_t> rows_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
  std::atomic<std::int64_t> busy_ns_ = 0;
  mutable std::mutex mutex_;  // guards the following members
  std::int64_t skipped_ = 0;
  std::string skipped_error_ = {};  // one of them
};

// The progress of all operators. Must outlive them.
class ExecutionProgress {
 public:
  ExecutionProgress(std::string name, std::int64_t limit_bytes, bool shows_bars);
  ~ExecutionProgress();
  ExecutionProgress(const ExecutionProgress&) = delete;
  ExecutionProgress& operator=(const ExecutionProgress&) = delete;

  std::shared_ptr<OperatorProgress> add(const std::string& name, std::int64_t workers);
  void hold(std::int64_t bytes);
  ExecutionStats stats() const;

  // Shows the progress on the terminal, at most ten times a second.
  void show();
  // Reports on stderr what operators have left out; called at the end of the execution.
  void report_skipped() const;

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  const std::string name_;
  const std::int64_t limit_bytes_;
  const bool shows_bars_;
  const Clock::time_point began_ = Clock::now();
  std::vector<std::shared_ptr<OperatorProgress>> operators_;
  std::atomic<std::int64_t> held_bytes_ = 0;
  std::atomic<std::int64_t> peak_bytes_ = 0;
  Clock::time_point shown_ = began_;
  std::size_t lines_ = 0;  // drawn on the terminal
};

}  // namespace cadre::data
