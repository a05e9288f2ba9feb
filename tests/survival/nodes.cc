#include "survival/nodes.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace cadre::survival {
namespace {

// Returns processes below an agent: its fork server, and the workers.
std::vector<pid_t> servers_of(pid_t agent) { return children_of(agent); }

std::vector<pid_t> workers_on(pid_t agent) {
  std::vector<pid_t> workers;
  for (const pid_t server : servers_of(agent)) std::ranges::copy(workers_of(server), std::back_inserter(workers));
  return workers;
}

}  // namespace

std::vector<pid_t> Nodes::workers() const {
  std::vector<pid_t> workers;
  for (const pid_t agent : network_.agents()) std::ranges::copy(workers_on(agent), std::back_inserter(workers));
  return workers;
}

Victim Nodes::draw_victim(Random& random, bool spares_workers) {
  const double whom = random.uniform(0, 1);
  return whom < 0.12   ? Victim::controller
         : whom < 0.18 ? Victim::controller_and_agent
         : whom < 0.24 ? Victim::everyone
         : whom < 0.28 ? Victim::stopped
         : whom < 0.42 ? Victim::agent
         : whom < 0.5  ? Victim::agent_told_to_go
         : whom < 0.58 ? Victim::agent_stopped
         : whom < 0.63 ? Victim::node_stopped
         : whom < 0.72 ? Victim::agents_server
         : whom < 0.78 ? (spares_workers ? Victim::agent : Victim::worker)
         : whom < 0.88 ? Victim::connection
         : whom < 0.93 ? Victim::half_connection
                       : Victim::cut_off;
}

// Short ones cost a connection nothing, some cost the connection, and few cost the node.
Milliseconds Nodes::draw_time(Random& random) {
  const double how = random.uniform(0, 1);
  if (how < 0.75) return Milliseconds(random.log_uniform(10, 1000));
  if (how < 0.96) return Milliseconds(random.uniform(4000, 9000));
  return Milliseconds(random.uniform(18000, 28000));
}

bool Nodes::disturb(Victim victim, Random& random, const ControllerProcess& controller) {
  const std::vector<pid_t> agents = network_.agents();
  if (agents.empty()) return false;
  const pid_t agent = agents[random.below(agents.size())];
  constexpr Milliseconds longest_stop{9000};  // the workers of a node that stands still longer run twice
  const Milliseconds time = draw_time(random);
  switch (victim) {
    case Victim::agent:
      ::kill(agent, SIGKILL);
      return true;
    case Victim::agent_told_to_go:
      ::kill(agent, SIGTERM);
      return true;
    case Victim::agent_stopped:
      network_.stop({agent}, std::min(time, longest_stop));
      return true;
    case Victim::node_stopped: {
      std::vector<pid_t> all = servers_of(agent);
      std::ranges::copy(workers_on(agent), std::back_inserter(all));
      all.push_back(agent);
      network_.stop(all, std::min(time, longest_stop));
      return true;
    }
    case Victim::agents_server: {
      const std::vector<pid_t> servers = servers_of(agent);
      for (const pid_t server : servers) ::kill(server, SIGKILL);
      return !servers.empty();
    }
    case Victim::controller_and_agent:
      for (const int signal : {SIGSTOP, SIGKILL}) {
        controller.kill(signal);
        ::kill(agent, signal);
      }
      return true;
    case Victim::connection:
      if (!network_.carries(agent)) return false;
      if (random.chance(0.5)) {
        network_.cut(agent);
      } else {
        network_.cut_after(agent, static_cast<std::size_t>(random.log_uniform(1, 20000)));
      }
      return true;
    case Victim::half_connection:
      if (!network_.carries(agent)) return false;
      network_.leave_half_open(agent, random.chance(0.5) ? Network::End::agent : Network::End::controller);
      return true;
    case Victim::cut_off:
      if (!network_.carries(agent)) return false;
      network_.drop(agent, time);
      return true;
    default:
      return false;
  }
}

}  // namespace cadre::survival
