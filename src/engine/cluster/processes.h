// Agents on this machine, as child processes: a cluster for tests, and for programs that are tried before there is one.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/cluster/command.h"
#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {

// The processes end with the thread that asked for them, unless they are to outlive it.
class Processes final : public Provider {
 public:
  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) override;
  std::vector<NodeProcess> processes() const override;
  std::vector<AgentConnection> take_connections() override { return std::exchange(connections_, {}); }
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override;

 private:
  using Place = std::pair<std::uint64_t, std::int64_t>;  // request and ordinal

  std::map<Place, std::unique_ptr<Command>> agents_ = {};
  std::map<std::uint64_t, std::string> marks_ = {};  // by request
  std::vector<AgentConnection> connections_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
