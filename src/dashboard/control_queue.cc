#include "dashboard/control_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "cadre/error.h"

namespace cadre::dashboard {
namespace {

constexpr std::chrono::milliseconds kAnswerPeriod(20);  // between two looks for answers

}  // namespace

std::optional<std::future<ControlQueue::Outcome>> ControlQueue::add(std::string location, Dict request) {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= kMost) return std::nullopt;
  ++waiting_;
  added_.push_back({.location = std::move(location), .content = std::move(request)});
  woken_.notify_all();
  return added_.back().outcome.get_future();
}

void ControlQueue::run() {
  std::vector<Request> requests;
  std::unique_lock lock(mutex_);
  const auto is_woken = [this] { return stopped_ || !added_.empty(); };
  while (!stopped_) {
    if (requests.empty()) {
      woken_.wait(lock, is_woken);
    } else {
      woken_.wait_for(lock, kAnswerPeriod, is_woken);
    }
    std::ranges::move(added_, std::back_inserter(requests));
    added_.clear();
    lock.unlock();
    const std::size_t answered = std::erase_if(requests, [this](Request& request) { return carry_on(request); });
    if (answered > 0) answered_();
    lock.lock();
    waiting_ -= answered;
  }
  std::ranges::move(added_, std::back_inserter(requests));
  added_.clear();
  for (Request& request : requests) request.outcome.set_value({Result::unavailable, "the dashboard has ended"});
}

bool ControlQueue::carry_on(Request& request) {
  Outcome outcome;
  try {
    if (!request.asked) request.asked = controls_.ask(request.location, request.content);
    std::optional<std::string> answer = request.asked->answer();
    if (!answer) return false;
    outcome.text = *std::move(answer);
  } catch (const InvalidArgument& error) {
    outcome = {Result::refused, error.what()};
  } catch (const NotFound& error) {
    outcome = {Result::refused, error.what()};
  } catch (const std::exception& error) {
    outcome = {Result::unavailable, error.what()};
  }
  request.outcome.set_value(std::move(outcome));
  return true;
}

void ControlQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  woken_.notify_all();
}

}  // namespace cadre::dashboard
