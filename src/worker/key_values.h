// The controller's side of a group's key-value store (key_value_store.h): requests in, replies out, some of them later.
// No I/O, no clock of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/message.h"

namespace cadre::worker {

class KeyValues {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Reply {
    channel::Caller caller = {};
    channel::StoreReply reply = {};
  };

  // Handles a request. Returns its reply, unless it must wait, and the replies to waiting requests that it has made
  // ready.
  std::vector<Reply> handle(std::uint64_t worker, const channel::StoreRequest& request, TimePoint now);
  // Returns replies to requests that timed out.
  std::vector<Reply> expire(TimePoint now);
  // Returns the next time at which a request times out; empty if none is waiting.
  std::optional<TimePoint> next_deadline() const;
  // Removes all values and waiting requests, for the next group.
  void clear();

 private:
  // A request that lacks keys. It watches one of them: the cost of each key that is set is that of the requests that
  // watch it, however many others wait.
  struct Waiting {
    channel::StoreRequest request;
    TimePoint until;
    std::size_t watched = 0;  // index of the key
  };

  std::optional<std::size_t> first_missing(const channel::StoreRequest& request, std::size_t from) const;
  void watch(const channel::Caller& caller, Waiting waiting);
  void wake_watchers(const std::string& key, std::vector<Reply>& replies);
  channel::StoreReply execute(const channel::StoreRequest& request);
  channel::StoreReply add(const std::string& key, std::int64_t amount);
  std::string missing(const channel::StoreRequest& request) const;

  std::unordered_map<std::string, std::string> values_;
  std::map<channel::Caller, Waiting> waiting_;
  std::set<std::pair<TimePoint, channel::Caller>> deadlines_;               // of waiting_
  std::unordered_map<std::string, std::vector<channel::Caller>> watchers_;  // by key; each waits
};

}  // namespace cadre::worker
