// The worker's end of the connection: sends messages and waits for answers. No thread, no event loop.
#pragma once

#include <condition_variable>
#include <map>
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

// The worker's end of a connection. Any thread may send and call; no thread waits for the reply to another one. One
// report is sent at a time. All functions block. They throw ControllerGone when the connection ends, and
// InvalidArgument for a message beyond the limits, which is then not sent.
class WorkerEnd {
 public:
  explicit WorkerEnd(base::FileDescriptor connection) : connection_(std::move(connection)) {}

  // Sets a function that is called once per wait when nothing has arrived for 100 ms: such a wait is likely to last
  // longer.
  void when_idle(void (*act)());

  // Receives the assignment; must be the first call. Throws ProtocolError if the other end uses another protocol or
  // version.
  Assignment receive_assignment();

  // Sends a message. The directory that a report names then belongs to the controller.
  template <class Sent>
  void send(const Sent& message) {
    const std::lock_guard lock(shared_->sending);
    encode(message, shared_->out);
    send_frame();
  }
  // Waits until the controller has committed the report that was sent, and returns its answer.
  Answer receive_answer();
  // Sends a report and returns its answer.
  Answer report(const Report& report);
  // Calls the group's key-value store and returns when the call has succeeded or failed. Numbers the request.
  StoreReply call(StoreRequest request);
  // Sends a request, numbers it, and returns the controller's reply.
  Reply call(Request request);

 private:
  // State that threads share; behind a pointer, so that this object can be moved.
  struct Shared {
    std::mutex sending;
    Bytes out;
    std::mutex receiving;  // guards the following members
    std::condition_variable arrived;
    bool is_being_read = false;                    // one of the waiting threads reads for all
    bool has_ended = false;                        // nothing can be read any more
    std::map<CallNumber, FromController> replies;  // not taken yet; 0: the answer to the report
    CallNumber calls = 0;                          // made so far
  };

  CallNumber next_call();
  FromController wait_for(CallNumber call);
  template <class Expected>
  Expected receive_reply(CallNumber call);
  std::span<const std::byte> receive();
  void send_frame();

  // The connection is read by one thread at a time.
  base::FileDescriptor connection_;
  void (*when_idle_)() = nullptr;
  FrameReader in_;
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
};

}  // namespace cadre::channel
