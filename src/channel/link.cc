#include "channel/link.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace cadre::channel {
namespace {

// Read at most in one turn, so that no other link waits long.
constexpr std::size_t kMostBytesAtOnce = std::size_t{64} << 10;

Link::TimePoint now() { return std::chrono::steady_clock::now(); }

}  // namespace

Link::Link(Poller& poller, std::uint64_t session, std::function<void(LaneMessage&&)> message, Times times)
    : poller_(poller), session_(session), times_(times), message_(std::move(message)) {}

void Link::connect(std::unique_ptr<Stream> stream, std::span<const std::byte> early, TimePoint now) {
  disconnect("the other end has connected again");
  stream_ = std::move(stream);
  broken_.reset();
  session_.connect(now);
  poller_.watch(stream_->descriptor(), [this] { on_ready(); });
  receive(early, now);
  flush(now);
}

void Link::disconnect(const std::string& reason) {
  if (stream_ == nullptr) return;
  const TimePoint at = now();
  broken_ = Break{.at = at,
                  .last_heard = session_.last_heard(),
                  .was_silent = at - session_.last_heard() >= times_.silence,
                  .reason = reason};
  poller_.unwatch(stream_->descriptor());
  stream_.reset();
  session_.disconnect();
}

void Link::on_ready() {
  const TimePoint time = now();
  read(time);
  write(time);
}

void Link::read(TimePoint now) {
  static thread_local std::array<std::byte, kMostBytesAtOnce> space;
  try {
    do {
      const std::size_t count = stream_->read(space);
      if (count == 0) return;
      receive(std::span(space).first(count), now);
    } while (stream_ != nullptr && stream_->has_more_to_read());
  } catch (const StreamEnded& end) {
    disconnect(end.what());
  }
}

// Passes on all messages that have arrived, also beside one that is none: they are not sent again.
void Link::receive(std::span<const std::byte> bytes, TimePoint now) {
  std::vector<LaneMessage> messages;
  std::optional<std::string> fault;
  try {
    session_.receive(bytes, now, messages);
  } catch (const ProtocolError& error) {
    fault = error.what();
  }
  for (LaneMessage& message : messages) {
    try {
      message_(std::move(message));
    } catch (const ProtocolError& error) {
      if (!fault) fault = error.what();
    }
  }
  if (fault) disconnect(*fault);
}

void Link::flush(TimePoint now) {
  if (stream_ == nullptr) return;
  if (is_silent(now)) read(now);  // this process may have been held up, and not have listened
  if (stream_ == nullptr) return;
  if (is_silent(now))
    return disconnect(fmt::format("nothing was heard for {:%Q} seconds",
                                  std::chrono::duration_cast<std::chrono::seconds>(times_.silence)));
  write(now);
}

void Link::write(TimePoint now) {
  if (stream_ == nullptr) return;
  if (is_mute(now)) return poller_.watch_writing(stream_->descriptor(), false);
  try {
    for (auto bytes = session_.output(now); !bytes.empty(); bytes = session_.output(now)) {
      const std::size_t count = stream_->write(bytes);
      session_.written(count);
      if (count == 0) break;
    }
    poller_.watch_writing(stream_->descriptor(), stream_->waits_to_write());
  } catch (const StreamEnded& end) {
    disconnect(end.what());
  }
}

std::optional<Link::TimePoint> Link::next_flush() const {
  if (stream_ == nullptr) return std::nullopt;
  const TimePoint silent = session_.last_heard() + times_.silence;
  if (is_mute(now())) return silent;
  return std::min(silent, session_.next_output().value_or(silent));
}

}  // namespace cadre::channel
