#include "engine/cluster/node_requests.h"

#include <algorithm>

#include "base/retry_delay.h"

namespace cadre::engine::cluster {
namespace {

constexpr std::int64_t kMostFailures = 5;

}  // namespace

void NodeRequests::take_over(const Continuation& continuation) {
  for (const auto& [request, gone] : continuation.claimed) {
    requests_[request.id] = request;
    gone_[request.id] = gone;
    taken_over_.insert(request.id);
  }
  for (const auto& [request, ordinal] : continuation.surplus) {
    surplus_.emplace(request, ordinal);
    gone_[request].insert(ordinal);
  }
}

const NodeRequest& NodeRequests::add(NodeRequest request) {
  request.id = ++last_;
  return requests_[last_] = std::move(request);
}

std::vector<std::uint64_t> NodeRequests::all() const {
  std::vector<std::uint64_t> all;
  for (const auto& [id, request] : requests_) all.push_back(id);
  return all;
}

std::vector<KeptRequest> NodeRequests::kept() const {
  std::vector<KeptRequest> kept;
  for (const auto& [id, request] : requests_) {
    const auto gone = gone_.find(id);
    kept.push_back({request, gone == gone_.end() ? std::set<std::int64_t>() : gone->second});
    if (std::ssize(kept.back().ended) >= request.nodes) kept.pop_back();
  }
  return kept;
}

std::vector<WaitingNodes> NodeRequests::waiting(const std::set<Place>& there) const {
  std::vector<WaitingNodes> waiting;
  for (const KeptRequest& one : kept()) {
    const auto& [request, gone] = one;
    const std::int64_t nodes = request.nodes - std::ssize(gone) - std::ranges::count_if(there, [&](const Place& place) {
                                 return place.first == request.id && !gone.contains(place.second);
                               });
    if (nodes <= 0) continue;
    waiting.push_back({.group = request.group, .nodes = nodes});
    if (const Queued* why = why_waits(one, there)) {
      waiting.back().reason = why->reason;
      waiting.back().expected_start = why->expected_start;
    }
  }
  return waiting;
}

// Returns what was said of the first node that is not there, or of the whole request; nullptr: nothing was.
const Queued* NodeRequests::why_waits(const KeptRequest& kept, const std::set<Place>& there) const {
  const auto found = queued_.find(kept.request.id);
  if (found == queued_.end()) return nullptr;
  const Queued* of_all = nullptr;
  for (const auto& [ordinal, queued] : found->second) {
    if (!ordinal) {
      of_all = &queued;
    } else if (!there.contains({kept.request.id, *ordinal}) && !kept.ended.contains(*ordinal)) {
      return &queued;
    }
  }
  return of_all;
}

std::vector<NodeRequests::Place> NodeRequests::awaited(const std::set<Place>& there) const {
  std::vector<Place> awaited;
  for (const auto& [request, gone] : kept()) {
    for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
      if (!gone.contains(ordinal) && !there.contains({request.id, ordinal})) awaited.emplace_back(request.id, ordinal);
    }
  }
  return awaited;
}

std::int64_t NodeRequests::replacing(const std::string& group) const {
  std::int64_t nodes = 0;
  for (const Replacement& replacement : replacements_) {
    if (replacement.request.group == group) nodes += replacement.request.nodes;
  }
  return nodes;
}

bool NodeRequests::has_hope(const std::set<Place>& there) const {
  return has_replacements() ||
         std::ranges::any_of(awaited(there), [this](const Place& place) { return !refused_.contains(place.first); });
}

void NodeRequests::note(const Refused& refused) {
  refused_.insert(refused.request);
  queued_[refused.request] = {{std::nullopt, {.request = refused.request, .reason = "refused: " + refused.reason}}};
}

void NodeRequests::note(const NodeEnds& ends) {
  (ends.ordinal ? ends_[{ends.request, *ends.ordinal}] : all_end_[ends.request]) = ends.at;
}

std::optional<NodeRequests::TimePoint> NodeRequests::end_of(const Place& place) const {
  const auto own = ends_.find(place);
  const auto common = all_end_.find(place.first);
  std::optional<TimePoint> end = own == ends_.end() ? std::nullopt : own->second;
  if (common != all_end_.end() && common->second) end = std::min(end.value_or(*common->second), *common->second);
  return end;
}

bool NodeRequests::agent_ended(const AgentEnded& ended, bool had_connected, bool is_needed, TimePoint now) {
  if (!contains(ended.request)) return true;
  if (ended.ordinal) {
    ends_.erase({ended.request, *ended.ordinal});
  } else {
    all_end_.erase(ended.request);
    std::erase_if(ends_, [&](const auto& entry) { return entry.first.first == ended.request; });
  }
  NodeRequest request = remove(ended.request, ended.ordinal);
  if (request.nodes == 0) return true;
  const bool has_waited_in_vain = !had_connected && is_taken_over(ended.request);  // for a controller
  if (!has_waited_in_vain) {
    if (!had_connected) ++failures_;
    if (is_needed || failures_ > kMostFailures) return false;
  }
  const bool is_at_once = had_connected || has_waited_in_vain;
  const std::chrono::duration<double> delay(is_at_once ? 0 : base::retry_delay_s(failures_ + 2));
  replacements_.push_back({std::move(request), now + std::chrono::duration_cast<TimePoint::duration>(delay)});
  return true;
}

void NodeRequests::replace(const Place& place, TimePoint now) {
  if (!contains(place.first)) return;
  NodeRequest request = remove(place.first, place.second);
  if (request.nodes != 0) replacements_.push_back({std::move(request), now});
}

void NodeRequests::forget(const Place& place) {
  if (contains(place.first)) gone_[place.first].insert(place.second);
}

void NodeRequests::withdraw(const Place& place) {
  forget(place);
  surplus_.insert(place);
}

// Counts a node, or all of a request, as gone; returns a request for those that did not count as such before.
NodeRequest NodeRequests::remove(std::uint64_t id, const std::optional<std::int64_t>& ordinal) {
  NodeRequest request = requests_.at(id);
  std::set<std::int64_t>& gone = gone_[id];
  const auto before = std::ssize(gone);
  for (std::int64_t i = ordinal.value_or(0); i < (ordinal ? *ordinal + 1 : request.nodes); ++i) gone.insert(i);
  request.nodes = std::ssize(gone) - before;
  return request;
}

std::optional<NodeRequests::TimePoint> NodeRequests::next_replacement() const {
  std::optional<TimePoint> next;
  for (const Replacement& replacement : replacements_) next = std::min(next.value_or(replacement.at), replacement.at);
  return next;
}

std::vector<NodeRequest> NodeRequests::take_replacements(TimePoint now) {
  std::vector<NodeRequest> due;
  std::erase_if(replacements_, [&](Replacement& replacement) {
    if (replacement.at > now) return false;
    due.push_back(std::move(replacement.request));
    return true;
  });
  return due;
}

}  // namespace cadre::engine::cluster
