// The worker's end of the connection: writes a message and waits for the answer. No thread, no event loop.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/file_descriptor.h"
#include "channel/codec.h"
#include "channel/frame.h"
#include "channel/message.h"

namespace cadre::channel {

// Thrown when the controller is gone. Not a std::exception, so that user code that catches those does not go on: the
// process has nobody left to work for and ends.
struct ControllerGone {};

// All functions block, and throw ControllerGone when the connection ends, and InvalidArgument for a message beyond the
// limits, which is then not sent. One thread at a time receives; send() may be called from any, also meanwhile.
class WorkerEnd {
 public:
  explicit WorkerEnd(base::FileDescriptor connection) : connection_(std::move(connection)) {}

  // Called each time when nothing has come for 100 ms, once: whoever waits so long is likely to wait for longer.
  void when_idle(void (*act)()) { when_idle_ = act; }

  // The first call. Throws ProtocolError when the other end speaks something else.
  Assignment receive_assignment();

  // What is sent belongs to the controller, with the directory that a report names.
  template <class Sent>
  void send(const Sent& message) {
    const std::lock_guard lock(*sending_);
    encode(message, out_);
    send_frame();
  }
  // Returns when the controller has committed the report that was sent.
  Answer receive_answer();
  // Both in one.
  Answer report(const Report& report);
  // A call of the group's key-value store. Returns when it is done, or has failed.
  StoreReply call(const StoreRequest& request);
  // A question. Returns when the controller has replied.
  Reply call(const Request& request);

 private:
  std::span<const std::byte> receive();
  void send_frame();

  base::FileDescriptor connection_;
  void (*when_idle_)() = nullptr;
  FrameReader in_;
  std::unique_ptr<std::mutex> sending_ = std::make_unique<std::mutex>();  // so that this object can be moved
  Bytes out_;
};

}  // namespace cadre::channel
