// The worker's end of the connection: writes a message and waits for the answer. No thread, no event loop.
#pragma once

#include <string>

#include "base/file_descriptor.h"
#include "channel/codec.h"
#include "channel/frame.h"
#include "channel/message.h"

namespace cadre::channel {

// Thrown when the controller is gone. Not a std::exception, so that user code that catches those does not go on: the
// process has nobody left to work for and ends.
struct ControllerGone {};

// All functions block, are called from one thread, and throw ControllerGone when the connection ends, and
// InvalidArgument for a message beyond the limits, which is then not sent.
class WorkerEnd {
 public:
  explicit WorkerEnd(base::FileDescriptor connection) : connection_(std::move(connection)) {}

  // The first call. Throws ProtocolError when the other end speaks something else.
  Assignment receive_assignment();

  // What is sent belongs to the controller, with the directory that a report names. Anything but a report is the last
  // call.
  template <class Sent>
  void send(const Sent& message) {
    encode(message, out_);
    send_frame();
  }
  // Returns when the controller has committed the report that was sent.
  Answer receive_answer();
  // Both in one.
  Answer report(const Report& report);
  // A call of the group's key-value store. Returns when it is done, or has failed.
  StoreReply call(const StoreRequest& request);

 private:
  std::span<const std::byte> receive();
  void send_frame();

  base::FileDescriptor connection_;
  FrameReader in_;
  Bytes out_;
};

}  // namespace cadre::channel
