// A network between agents on this machine and their controllers, as bad as a test wants it: connections are cut, left
// half open, and black holes swallow what is sent. Agents connect to it instead of their controller, which it connects
// to.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::survival {

// Call at the beginning of main. In an agent that a network of tests is to carry (kNetworkVariable), replaces the
// addresses of the controller by one of the network. Returns a name for the agent's node; empty in all other processes.
std::string enter_network();
// Has the path of the socket where agents ask: a line "<address of the controller> <name of the node>", answered by a
// line with the address that the agent is to dial. The address of an agent whose session is in its standard input and
// output is "-"; it is listed only.
inline constexpr const char* kNetworkVariable = "CADRE_TEST_NETWORK";

// Runs in a thread of its own; any thread may call its members.
class Network {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;

  // Agents ask at a socket with this path.
  explicit Network(std::filesystem::path socket);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Returns kNetworkVariable as "NAME=value".
  std::string variable() const { return std::string(kNetworkVariable) + "=" + path_.string(); }
  // Returns the agents that run, those that came last at the end.
  std::vector<pid_t> agents() const;
  // Returns false for an agent whose session is in its standard input and output: nothing below changes that.
  bool carries(pid_t agent) const;

  // Resets all connections of an agent: at once, or in the middle of what is sent, after this many more bytes.
  void cut(pid_t agent);
  void cut_after(pid_t agent, std::size_t bytes);
  // Resets all connections of an agent at one end, and keeps it from the other one.
  enum class End { agent, controller };
  void leave_half_open(pid_t agent, End closed);
  // Neither forwards nor closes anything of an agent for this time.
  void drop(pid_t agent, Milliseconds time);
  // Stops processes, and continues them after this time.
  void stop(const std::vector<pid_t>& processes, Milliseconds time);
  // Ends all that drop(), cut_after() and stop() have begun.
  void heal();

 private:
  // One end of a connection.
  struct Socket {
    base::FileDescriptor descriptor = {};
    std::vector<char> out = {};  // to be written
    bool has_ended = false;      // nothing more is read from it
    bool is_shut = false;        // nothing more is written to it
  };
  struct Connection {
    Socket agent;
    Socket controller;
  };
  struct Way {
    pid_t agent = 0;
    base::FileDescriptor process = {};  // a pidfd
    bool is_carried = false;            // false: its session is in its standard input and output, and there is no more
    sockaddr_in controller = {};
    sockaddr_in address = {};            // where the agent dials
    base::FileDescriptor listener = {};  // none while nobody listens at the controller's port
    Clock::time_point listens_again = {};
    Clock::time_point flows_again = {};
    std::optional<std::size_t> bytes_to_cut = {};
    std::list<Connection> connections = {};
  };
  struct Stopped {
    base::FileDescriptor process;
    Clock::time_point until;
  };

  void run();
  void turn();
  int time_to_wait(Clock::time_point now) const;
  void handle_time(Clock::time_point now);
  void admit_agent();
  void accept(Way& way);
  void serve(Way& way);
  static bool forward(Way& way, Socket& from, Socket& to);
  static void reset_all(Way& way);
  template <class Act>
  void change(pid_t agent, const Act& act);
  void wake() const;

  std::filesystem::path path_;
  base::FileDescriptor asked_;  // where agents ask
  base::FileDescriptor wake_;   // an eventfd
  mutable std::mutex mutex_;
  std::list<Way> ways_ = {};
  std::vector<Stopped> stopped_ = {};
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cadre::survival
