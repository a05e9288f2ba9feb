// Nodes of the Slurm allocation in which this process runs: an agent is a step. Steps end with the thread that asked,
// unless they are to outlive it: then srun goes on as a process of its own, and the step with it.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "engine/cluster/command.h"
#include "engine/cluster/slurm.h"

namespace cadre::engine::cluster {

// One srun for each node, so that a node can be given back and asked for again; one for all nodes of an all_or_none
// request, which are given back together, unless their sessions are in its input and output.
class SlurmSteps final : public Provider {
 public:
  // `own`: the environment of this process. Throws InvalidArgument if it is in no allocation.
  explicit SlurmSteps(slurm::Variables own);

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) override;
  std::vector<NodeProcess> processes() const override;
  // True while an srun that was told to end has not ended: one that is killed between getting its step and launching
  // it leaves a step that no task ends, and whose nodes no other step gets before the allocation is over.
  bool is_giving_back() const override;
  // The allocation's time limit, which is asked every minute, because it may be changed; or when it was found ended.
  std::optional<std::chrono::steady_clock::time_point> all_end() const override { return ends_; }
  void look_soon() override;
  std::vector<AgentConnection> take_connections() override { return std::exchange(connections_, {}); }
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Step {
    NodeRequest request = {};
    AgentStart start = {};
    std::optional<std::int64_t> ordinal = {};  // empty: all nodes of the request
    std::vector<bool> released = {};           // by ordinal, of an all_or_none request
    std::unique_ptr<Command> command = {};     // empty: not started again yet
    std::string waits_for = {};                // as told last
    std::int64_t failures = 0;                 // in a row, to reach Slurm
    TimePoint next = TimePoint::max();         // to start it again
    bool is_ending = false;
  };

  void start(Step& step);
  void end(Step& step);
  void try_again(Step& step, const std::string& why);
  // Returns false once the step has ended.
  bool look(Step& step);
  std::int64_t nodes_in_use() const;
  void refuse(std::uint64_t request, const std::string& reason);
  void look_at_limit();
  void set_limit(const slurm::Span& span);

  slurm::Variables own_;
  double begun_;                            // when this object was made, in seconds since 1970
  std::optional<TimePoint> ends_ = {};      // the allocation
  std::unique_ptr<Command> question_ = {};  // for that
  TimePoint next_question_ = TimePoint::min();
  std::vector<std::unique_ptr<Step>> steps_ = {};
  std::vector<AgentConnection> connections_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
