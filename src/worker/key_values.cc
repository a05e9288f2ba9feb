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

bool waits(Operation operation) { return operation == Operation::get || operation == Operation::wait; }

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
  if (waits(request.operation)) {
    if (const auto missing = first_missing(request, 0)) {
      watch(caller, {request, now + std::chrono::milliseconds(request.timeout_ms), *missing});
      return {};
    }
    return {{caller, execute(request)}};
  }
  const bool was_there = takes_one_key(request.operation) && values_.contains(request.keys.front());
  std::vector<Reply> replies{{caller, execute(request)}};
  if (!was_there && takes_one_key(request.operation) && values_.contains(request.keys.front()))
    wake_watchers(request.keys.front(), replies);
  return replies;
}

std::vector<KeyValues::Reply> KeyValues::expire(TimePoint now) {
  std::vector<Reply> replies;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const channel::Caller caller = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    const Waiting waiting = std::move(waiting_.extract(caller).mapped());
    const auto watchers = watchers_.find(waiting.request.keys[waiting.watched]);
    std::erase(watchers->second, caller);
    if (watchers->second.empty()) watchers_.erase(watchers);
    replies.push_back({caller, {.error = missing(waiting.request)}});
  }
  return replies;
}

std::optional<KeyValues::TimePoint> KeyValues::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

void KeyValues::clear() {
  values_.clear();
  waiting_.clear();
  deadlines_.clear();
  watchers_.clear();
}

// Returns the index of a key that is not there, from this one on; empty if all are.
std::optional<std::size_t> KeyValues::first_missing(const channel::StoreRequest& request, std::size_t from) const {
  const auto found = std::find_if(request.keys.begin() + static_cast<std::ptrdiff_t>(from), request.keys.end(),
                                  [this](const std::string& key) { return !values_.contains(key); });
  if (found == request.keys.end()) return std::nullopt;
  return static_cast<std::size_t>(found - request.keys.begin());
}

void KeyValues::watch(const channel::Caller& caller, Waiting waiting) {
  watchers_[waiting.request.keys[waiting.watched]].push_back(caller);
  deadlines_.emplace(waiting.until, caller);
  waiting_.insert_or_assign(caller, std::move(waiting));
}

// Replies to requests that lacked only this key; those that lack others watch one of them.
void KeyValues::wake_watchers(const std::string& key, std::vector<Reply>& replies) {
  const auto watchers = watchers_.extract(key);
  if (watchers.empty()) return;
  for (const channel::Caller& caller : watchers.mapped()) {
    Waiting waiting = std::move(waiting_.extract(caller).mapped());
    deadlines_.erase({waiting.until, caller});
    auto missing = first_missing(waiting.request, waiting.watched);
    if (!missing) missing = first_missing(waiting.request, 0);  // an earlier one may have been erased
    if (missing) {
      waiting.watched = *missing;
      watch(caller, std::move(waiting));
    } else {
      replies.push_back({caller, execute(waiting.request)});
    }
  }
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
