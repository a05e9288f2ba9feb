// One end of a session with another process, over streams that break and come back: resumable_session.h with
// descriptors.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "channel/poller.h"
#include "channel/resumable_session.h"
#include "channel/stream.h"

namespace cadre::channel {

// Calls `message` for each message that has arrived, inside the poller's wait() or flush(); it may call any member but
// connect(). If it throws ProtocolError, the connection ends once the messages that have come with that one were passed
// on.
class Link {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = ResumableSession::TimePoint;

  // A connection on which nothing has arrived for this time has broken, whatever the operating system says: the other
  // end sends something every second.
  static constexpr auto longest_silence = std::chrono::seconds(5);

  struct Times {
    Clock::duration silence = longest_silence;  // after which a connection has broken
    // An end that has heard nothing for so long sends nothing, until it hears something: then the other end, too, hears
    // nothing, and knows that the connection may be given up.
    Clock::duration mute_after = Clock::duration::max();
  };

  Link(Poller& poller, std::uint64_t session, std::function<void(LaneMessage&&)> message)
      : Link(poller, session, std::move(message), Times()) {}
  Link(Poller& poller, std::uint64_t session, std::function<void(LaneMessage&&)> message, Times times);
  ~Link() { disconnect(""); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Continues the session over a new stream, in place of the present one. `early`: what was read from it already.
  void connect(std::unique_ptr<Stream> stream, std::span<const std::byte> early, TimePoint now);
  void disconnect(const std::string& reason);
  bool is_connected() const { return stream_ != nullptr; }

  struct Break {
    TimePoint at;             // when the end was seen
    TimePoint last_heard;     // when something had arrived last
    bool was_silent = false;  // the connection was given up because of that
    std::string reason = {};
  };
  // Returns how the last connection ended; empty before the first one, and while there is one.
  const std::optional<Break>& broken() const { return broken_; }

  // Sends a message by the next flush(), or when the stream is there again. Throws InvalidArgument for one beyond
  // ResumableSession::max_bytes.
  void send(Lane lane, std::span<const std::byte> content) { session_.send(lane, content); }
  // Writes what is to be sent, and what is due by now. Ends a connection that has been silent for too long.
  void flush(TimePoint now);
  // Returns when flush() has something to do though nothing was sent.
  std::optional<TimePoint> next_flush() const;

  std::size_t kept_bytes() const { return session_.kept_bytes(); }
  std::size_t kept_pieces() const { return session_.kept_pieces(); }

 private:
  void on_ready();
  void read(TimePoint now);
  void write(TimePoint now);
  void receive(std::span<const std::byte> bytes, TimePoint now);

  bool is_silent(TimePoint now) const { return now - session_.last_heard() >= times_.silence; }
  bool is_mute(TimePoint now) const { return now - session_.last_heard() >= times_.mute_after; }

  Poller& poller_;
  ResumableSession session_;
  Times times_;
  std::function<void(LaneMessage&&)> message_;
  std::unique_ptr<Stream> stream_ = {};
  std::optional<Break> broken_ = {};
};

}  // namespace cadre::channel
