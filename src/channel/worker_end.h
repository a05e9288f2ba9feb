// The worker's end of the connection: sends a message and waits for the answer. No thread, no event loop.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/file_descriptor.h"
#include "channel/codec.h"
#include "channel/frame.h"
#include "channel/message.h"

namespace cadre::channel {

// Thrown when the controller is gone: the process must end. Not a std::exception, so that user code that catches
// those does not continue.
struct ControllerGone {};

// The worker's end of a connection. All functions block. They throw ControllerGone when the connection ends, and
// InvalidArgument for a message beyond the limits, which is then not sent. Only one thread at a time may receive;
// send() may be called from any thread, also meanwhile.
class WorkerEnd {
 public:
  explicit WorkerEnd(base::FileDescriptor connection) : connection_(std::move(connection)) {}

  // Sets a function that is called once per wait when nothing has arrived for 100 ms: such a wait is likely to last
  // longer.
  void when_idle(void (*act)()) { when_idle_ = act; }

  // Receives the assignment; must be the first call. Throws ProtocolError if the other end uses another protocol or
  // version.
  Assignment receive_assignment();

  // Sends a message. The directory that a report names then belongs to the controller.
  template <class Sent>
  void send(const Sent& message) {
    const std::lock_guard lock(*sending_);
    encode(message, out_);
    send_frame();
  }
  // Waits until the controller has committed the report that was sent, and returns its answer.
  Answer receive_answer();
  // Sends a report and returns its answer.
  Answer report(const Report& report);
  // Calls the group's key-value store and returns when the call has succeeded or failed.
  StoreReply call(const StoreRequest& request);
  // Sends a request and returns the controller's reply.
  Reply call(const Request& request);

 private:
  std::span<const std::byte> receive();
  void send_frame();

  base::FileDescriptor connection_;
  void (*when_idle_)() = nullptr;
  FrameReader in_;
  std::unique_ptr<std::mutex> sending_ = std::make_unique<std::mutex>();  // a pointer, so that this object can be moved
  Bytes out_;
};

}  // namespace cadre::channel
