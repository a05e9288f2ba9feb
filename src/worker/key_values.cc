#include "worker/key_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cadre::worker {
namespace {

using Operation = channel::StoreRequest::Operation;

bool takes_one_key(Operation operation) {
  return operation != Operation::wait && operation != Operation::contains && operation != Operation::size;
}

std::optional<std::int64_t> as_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<KeyValues::Reply> KeyValues::handle(std::uint64_t worker, const channel::StoreRequest& request,
                                                TimePoint now) {
  const channel::Caller caller{worker, request.call};
  if (takes_one_key(request.operation) && request.keys.size() != 1)
    return {{caller, {.error = fmt::format("a store's operation takes one key and got {}", request.keys.size())}}};
  if (!is_ready(request)) {
    waiting_[caller] = {request, now + std::chrono::milliseconds(request.timeout_ms)};
    return {};
  }
  std::vector<Reply> replies{{caller, execute(request)}};
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!is_ready(it->second.request)) {
      ++it;
      continue;
    }
    replies.push_back({it->first, execute(it->second.request)});
    it = waiting_.erase(it);
  }
  return replies;
}

std::vector<KeyValues::Reply> KeyValues::expire(TimePoint now) {
  std::vector<Reply> replies;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    replies.push_back({it->first, {.error = missing(it->second.request)}});
    it = waiting_.erase(it);
  }
  return replies;
}

std::optional<KeyValues::TimePoint> KeyValues::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [caller, waiting] : waiting_) next = next ? std::min(*next, waiting.until) : waiting.until;
  return next;
}

void KeyValues::clear() {
  values_.clear();
  waiting_.clear();
}

bool KeyValues::is_ready(const channel::StoreRequest& request) const {
  if (request.operation != Operation::get && request.operation != Operation::wait) return true;
  return std::ranges::all_of(request.keys, [this](const std::string& key) { return values_.contains(key); });
}

channel::StoreReply KeyValues::execute(const channel::StoreRequest& request) {
  const auto found = takes_one_key(request.operation) ? values_.find(request.keys.front()) : values_.end();
  const bool there = found != values_.end();
  switch (request.operation) {
    case Operation::set:
      values_[request.keys.front()] = request.value;
      return {};
    case Operation::get:
      return {.value = found->second};
    case Operation::wait:
      return {};
    case Operation::contains:
      return {.number = std::ranges::all_of(request.keys, [this](const auto& key) { return values_.contains(key); })};
    case Operation::add:
      return add(request.keys.front(), request.amount);
    case Operation::compare_and_set:
      if (there ? found->second == request.expected : request.expected.empty()) {
        values_[request.keys.front()] = request.value;
        return {.value = request.value};
      }
      return {.value = there ? found->second : request.expected};
    case Operation::erase:
      return {.number = static_cast<std::int64_t>(values_.erase(request.keys.front()))};
    case Operation::size:
      return {.number = static_cast<std::int64_t>(values_.size())};
  }
  return {.error = "a store's operation is unknown"};
}

channel::StoreReply KeyValues::add(const std::string& key, std::int64_t amount) {
  std::string& value = values_[key];
  const std::optional<std::int64_t> number = value.empty() ? 0 : as_number(value);
  if (!number) return {.error = fmt::format("the value of \"{}\" is no number, so nothing can be added to it", key)};
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*number, amount, &sum))
    return {.error = fmt::format("the sum of {} and {} under \"{}\" does not fit into 64 bits", *number, amount, key)};
  value = fmt::to_string(sum);
  return {.number = sum};
}

std::string KeyValues::missing(const channel::StoreRequest& request) const {
  std::string text;
  for (const std::string& key : request.keys) {
    if (!values_.contains(key)) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", key);
  }
  return fmt::format("after {:g} s nobody has set {}", static_cast<double>(request.timeout_ms) / 1e3, text);
}

}  // namespace cadre::worker
