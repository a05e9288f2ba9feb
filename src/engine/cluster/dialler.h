// Connects to the first of several addresses that answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "channel/poller.h"

namespace cadre::engine::cluster {

// An IP address and a port: "10.0.0.1:5000", "[fe80::1]:5000".
struct Address {
  std::string host = {};
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
// Return addresses as text, separated by commas, and from it. Throw InvalidArgument.
std::string to_text(const std::vector<Address>& addresses);
std::vector<Address> to_addresses(const std::string& text);

// Dials all addresses at once, inside the poller's wait(); used by one thread.
class Dialler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Failure {
    bool all_refused = false;  // nobody listens there any more, as after the end of a process
    std::string reason = {};   // with all addresses
  };

  Dialler(channel::Poller& poller, std::vector<Address> addresses);
  ~Dialler() { stop(); }
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  // Begins to dial, until the deadline. `connected` gets the first socket that is connected, once.
  void dial(TimePoint deadline, std::function<void(base::FileDescriptor)> connected);
  bool is_dialling() const { return !attempts_.empty(); }
  std::optional<TimePoint> deadline() const;
  // Gives up after the deadline. Returns how the last dial() has failed, once; empty if it has not.
  std::optional<Failure> take_failure(TimePoint now);

 private:
  struct Attempt {
    Address address;
    base::FileDescriptor socket;
  };

  void begin(const Address& address);
  void on_ready(int socket);
  void note(const Address& address, int error);
  void stop();

  channel::Poller& poller_;
  std::vector<Address> addresses_;
  std::vector<Attempt> attempts_ = {};
  TimePoint deadline_ = {};
  std::function<void(base::FileDescriptor)> connected_ = {};
  std::optional<Failure> failure_ = {};  // so far
};

}  // namespace cadre::engine::cluster
