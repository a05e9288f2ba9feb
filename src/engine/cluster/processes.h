// Agents on this machine, as child processes: a cluster for tests, and for programs that are tried before there is one.
#pragma once

#include <sys/types.h>

#include <map>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "channel/poller.h"
#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {

class Processes final : public Provider {
 public:
  Processes() = default;
  // Kills those that have not ended.
  ~Processes() override;

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override { return std::nullopt; }
  std::vector<int> fds() const override { return {poller_.descriptor()}; }

  // For tests: returns the process of a node; 0 if it has ended.
  pid_t process(std::uint64_t request, std::int64_t ordinal) const;

 private:
  using Place = std::pair<std::uint64_t, std::int64_t>;
  struct Process {
    pid_t id = 0;
    base::FileDescriptor descriptor = {};
  };

  void start_agent(const Place& place, const AgentStart& start);
  void reap(const Place& place);

  channel::Poller poller_;
  std::map<Place, Process> processes_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
