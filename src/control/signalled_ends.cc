#include "control/signalled_ends.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

namespace cadre::control {
namespace {

constexpr int kCodeBeforeSignal = 128;  // as a program says that handles the signal and ends

bool is_signalled_end(const engine::Event& event) {
  const auto* exited = std::get_if<engine::Exited>(&event);
  if (exited == nullptr) return false;
  const auto& [kind, value, detail, output] = exited->exit;
  constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
  return std::ranges::any_of(signals, [&](int signal) {
    return (kind == engine::Exit::Kind::signal && value == signal) ||
           (kind == engine::Exit::Kind::code && value == kCodeBeforeSignal + signal);
  });
}

}  // namespace

std::vector<engine::Event> SignalledEnds::pass(std::vector<engine::Event> arrived, bool interrupted, TimePoint now) {
  if (held_.empty() && std::ranges::none_of(arrived, is_signalled_end)) return arrived;
  for (engine::Event& event : arrived) {
    const auto due = is_signalled_end(event) ? std::optional(now + patience) : std::nullopt;
    held_.push_back({std::move(event), due});
  }
  std::vector<engine::Event> passed;
  for (; !held_.empty() && (interrupted || !held_.front().due || *held_.front().due <= now); held_.pop_front())
    passed.push_back(std::move(held_.front().event));
  return passed;
}

std::optional<SignalledEnds::TimePoint> SignalledEnds::due() const {
  return held_.empty() ? std::nullopt : held_.front().due;
}

}  // namespace cadre::control
