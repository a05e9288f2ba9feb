// The controller's event loop and its ends of the connections to workers. Built on kj's loop, which stays hidden.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "channel/message.h"

namespace cadre::channel {

using ConnectionId = std::uint64_t;

// The event loop of a thread: one per thread, used by that thread only. Callbacks run inside turn() and drain(), one
// at a time; they may call any member except turn(). An exception thrown by a callback leaves the turn() or drain()
// that ran it.
class Loop {
 public:
  struct Handlers {
    std::function<void(Message&&)> message = {};
    // Called once, last: the worker closed its end (empty `reason`), or sent an invalid message (`reason` describes
    // it).
    std::function<void(const std::string& reason)> closed = {};
    // Called in place of `message`, where it is set: the message's body as it came, which nobody has looked at.
    std::function<void(std::span<const std::byte> body)> body = {};
  };

  // Throws EngineError if the operating system refuses or the thread already has a loop.
  Loop();
  ~Loop();

  // Adds one end of a stream socket. Nothing is read before the next turn.
  ConnectionId add_connection(base::FileDescriptor socket, Handlers handlers);

  // Sends as much as the socket accepts now and the rest during turns. Does nothing if the connection is closed.
  // Throws InvalidArgument for a message beyond the limits and does not send it.
  void send(ConnectionId connection, const Assignment& assignment);
  void send(ConnectionId connection, const Answer& answer);
  void send(ConnectionId connection, const StoreReply& reply);
  void send(ConnectionId connection, const Reply& reply);
  // Sends the whole frame of a message as it is.
  void send_frame(ConnectionId connection, std::span<const std::byte> frame);

  // Handles the messages received so far without waiting. For a worker that has ended these are all its messages.
  void drain(ConnectionId connection);
  // Removes the connection; its callbacks are not called any more.
  void close(ConnectionId connection);

  // Runs `readable` in a turn whenever `fd` may have become readable (edge-triggered: read until nothing is left).
  // One watch per fd; the caller owns the fd and keeps it open until unwatch().
  void watch(int fd, std::function<void()> readable);
  void unwatch(int fd);

  // Lets the next turn poll for some microseconds before it sleeps, as after an answer: something is expected so soon.
  void expect_soon();

  // Runs a turn: sleeps until a callback has run, at most for `timeout` (empty: without limit), then runs the
  // callbacks of everything else that is ready.
  void turn(std::optional<std::chrono::nanoseconds> timeout);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cadre::channel
