#include "data/stage.h"

#include <arrow/record_batch.h>

#include <utility>

#include "data/compute.h"
#include "data/interrupts.h"

namespace cadre::data {

Stage::Stage(std::unique_ptr<TaskSource> tasks, const StageOptions& options, std::shared_ptr<OperatorProgress> progress)
    : tasks_(std::move(tasks)), options_(options), progress_(std::move(progress)) {}

Stage::~Stage() {
  cancel();
  for (std::thread& thread : threads_) thread.join();
  hold(-held_bytes_);
}

void Stage::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  tasks_->cancel();
}

std::optional<Block> Stage::next() {
  Lock lock(mutex_);
  while (threads_.size() < static_cast<std::size_t>(options_.threads) && !cancelled_)
    threads_.emplace_back([this] { work(); });
  for (;;) {
    if (cancelled_) throw Cancelled{};
    const auto output = outputs_.find(first_);
    if (output == outputs_.end()) {
      if (exhausted_ && first_ == started_) return std::nullopt;
      wait_with_checks(changed_, lock);
    } else if (!output->second.blocks.empty()) {
      Block block = std::move(output->second.blocks.front());
      output->second.blocks.pop_front();
      hold(-bytes_of(block));
      changed_.notify_all();
      return block;
    } else if (output->second.finished) {
      if (output->second.error) std::rethrow_exception(output->second.error);
      outputs_.erase(output);
      ++first_;
      changed_.notify_all();
    } else {
      wait_with_checks(changed_, lock);
    }
  }
}

void Stage::work() {
  while (do_next_task()) {
  }
}

bool Stage::do_next_task() {
  std::unique_lock asking(asking_);
  std::int64_t number = 0;
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] {
      return cancelled_ || exhausted_ || first_ == started_ || held_bytes_ + usual_bytes_ <= options_.limit_bytes;
    });
    if (cancelled_ || exhausted_) return false;
    number = started_++;
    outputs_[number];
  }
  std::optional<Task> task;
  std::exception_ptr error;
  try {
    task = tasks_->next();
  } catch (...) {
    error = std::current_exception();
  }
  if (!task) {
    {
      const std::lock_guard lock(mutex_);
      exhausted_ = true;
    }
    finish(number, error);
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    usual_bytes_ = task->bytes;
    hold(task->bytes);
  }
  asking.unlock();
  run(number, *task);
  return true;
}

void Stage::run(std::int64_t number, const Task& task) {
  std::exception_ptr error;
  {
    const OperatorProgress::Busy busy(*progress_);
    try {
      task.run([&](Block block) { emit(number, std::move(block)); });
    } catch (...) {
      error = std::current_exception();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    hold(-task.bytes);
  }
  if (!error) progress_->count_task();
  finish(number, error);
}

void Stage::emit(std::int64_t number, Block block) {
  if (block->num_rows() == 0) return;
  const std::int64_t bytes = bytes_of(block);
  {
    const OperatorProgress::Idle idle(*progress_);
    Lock lock(mutex_);
    Output& output = outputs_.at(number);
    changed_.wait(lock, [&] {
      return cancelled_ || held_bytes_ + bytes <= options_.limit_bytes || (number == first_ && output.blocks.empty());
    });
    if (cancelled_) throw Cancelled{};
    progress_->count(block->num_rows(), bytes);
    hold(bytes);
    output.blocks.push_back(std::move(block));
  }
  changed_.notify_all();
}

void Stage::finish(std::int64_t number, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    Output& output = outputs_.at(number);
    output.finished = true;
    output.error = std::move(error);
    if (output.error) exhausted_ = true;  // later tasks are not needed
  }
  changed_.notify_all();
}

void Stage::hold(std::int64_t bytes) {
  held_bytes_ += bytes;
  progress_->hold(bytes);
}

}  // namespace cadre::data
