// Nodes of a Ray cluster that is there already: an agent is a process of an actor. A launcher, a Python program beside
// this process (ray_launcher.py), asks Ray for them; nothing of Ray is linked.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/cluster/command.h"
#include "engine/cluster/ray.h"

namespace cadre::engine::cluster {

// A placement group for each node of a request, so that those that are there can begin, and each can be given back; one
// for all nodes of a request with the option "strategy", and of an all_or_none one. What waits is told every 5 s.
//
// Actors end with their launcher, and the launcher with this process unless agents are to outlive it: then it goes on
// until they have ended, and the next process connects to it.
class RayActors final : public Provider {
 public:
  // `own`: the environment of this process.
  explicit RayActors(Variables own);

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) override;
  std::vector<NodeProcess> processes() const override;
  bool is_giving_back() const override;
  void look_soon() override;
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override;

 private:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  struct Launcher {
    ray::LauncherKind kind = {};
    std::string mark = {};
    std::unique_ptr<Command> command = {};
    base::FileDescriptor socket = {};
    std::string in = {};
    std::string out = {};
    bool is_ready = false;                   // it is connected with Ray
    bool says_what_it_has = false;           // it was taken over, and will
    std::set<ray::Node> unclaimed = {};      // nodes that it gives back, of no request here
    std::string failure = {};                // why it is of no use
    TimePoint killed_at = TimePoint::max();  // unless it is ready, or has ended
  };
  struct Place {
    bool has_started = false;
    bool is_released = false;
  };
  struct Request {
    NodeRequest asked = {};
    AgentStart start = {};
    bool is_claimed = false;                    // of an earlier process: it cannot be made again
    std::map<std::int64_t, Place> places = {};  // by ordinal, those that have not ended
    Launcher* launcher = nullptr;               // none while it waits for another try
    TimePoint next_try = {};
  };

  void submit(Request& request);
  void try_again(Request& request, const std::string& why);
  Launcher& launcher_for(const Request& request);
  std::unique_ptr<Launcher> take_over(const NodeProcess& process);
  void release(Request& request, std::int64_t ordinal);
  // Returns false once it has ended.
  bool look(Launcher& launcher);
  void read(Launcher& launcher);
  void read_lines(Launcher& launcher);
  static void write(Launcher& launcher);
  static void give_up(Launcher& launcher, std::string why);
  void ended(const Launcher& launcher);
  void hear(Launcher& launcher, const ray::Ready& ready);
  void hear(Launcher& launcher, const ray::Failed& failed);
  void hear(Launcher& launcher, const ray::Has& has);
  void hear(Launcher& launcher, const ray::Started& started);
  void hear(Launcher& launcher, const Queued& queued);
  void hear(Launcher& launcher, const Refused& refused);
  void hear(Launcher& launcher, const AgentEnded& ended);
  void hear(Launcher& launcher, const NodeEnds& ends);
  Request* find(std::uint64_t request);
  void end(std::uint64_t request, std::int64_t ordinal, std::string reason, bool is_certain);

  Variables own_;
  bool has_been_ready_ = false;  // a launcher was; if another one cannot be, the cluster may come back
  std::int64_t failures_ = 0;    // of launchers, in a row
  std::vector<std::unique_ptr<Launcher>> launchers_ = {};
  std::map<std::uint64_t, Request> requests_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
