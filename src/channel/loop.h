// The controller's event loop and its ends of the connections to workers. kj's loop underneath; nothing of it shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "channel/message.h"

namespace cadre::channel {

using ConnectionId = std::uint64_t;

// One loop per thread, used by that thread only. Callbacks run inside turn() and drain(), one at a time; they may call
// anything here but turn(). An exception out of a callback comes out of the turn() or drain() that ran it.
class Loop {
 public:
  struct Handlers {
    std::function<void(Message&&)> message;
    // Once, last: the worker's end was closed, or sent what is no message (`reason` says what; else it is empty).
    std::function<void(const std::string& reason)> closed;
  };

  // Throws EngineError when the operating system refuses, or the thread has a loop already.
  Loop();
  ~Loop();

  // Takes one end of a stream socket. Nothing is read before the next turn.
  ConnectionId add_connection(base::FileDescriptor socket, Handlers handlers);

  // Sends at once what the socket takes and the rest during turns. Nothing happens when the connection is closed.
  // Throws InvalidArgument for a message beyond the limits, which is then not sent.
  void send(ConnectionId connection, const Assignment& assignment);
  void send(ConnectionId connection, const Answer& answer);
  void send(ConnectionId connection, const StoreReply& reply);
  void send(ConnectionId connection, const Reply& reply);

  // Handles what has arrived up to now without waiting. For a worker that has ended this is all it ever sent.
  void drain(ConnectionId connection);
  // Forgets the connection; none of its callbacks run any more.
  void close(ConnectionId connection);

  // Runs `readable` in a turn whenever `fd` may have something to read (it is edge-triggered: read until there is
  // nothing more). One at a time for each fd, which stays the caller's and open until unwatch().
  void watch(int fd, std::function<void()> readable);
  void unwatch(int fd);

  // An explicit turn: sleeps until a callback has run, at most `timeout` (empty: for ever), then runs the callbacks of
  // everything else that is ready.
  void turn(std::optional<std::chrono::nanoseconds> timeout);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cadre::channel
