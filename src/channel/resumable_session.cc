#include "channel/resumable_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "channel/little_endian.h"

namespace cadre::channel {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kHeaderBytes = 12;  // after the length
constexpr std::size_t kCountsBytes = 8 * num_lanes;
// Output is collected up to this size, so that many small messages are one system call.
constexpr std::size_t kOutputBytes = std::size_t{64} << 10;

void append_header(Bytes& bytes, std::uint8_t kind, std::size_t lane, bool is_last, std::uint64_t number,
                   std::size_t content_bytes) {
  append_number(bytes, static_cast<std::uint32_t>(kHeaderBytes + content_bytes));
  append_number(bytes, kind);
  append_number(bytes, static_cast<std::uint8_t>(lane));
  append_number(bytes, static_cast<std::uint8_t>(is_last));
  append_number(bytes, std::uint8_t{0});
  append_number(bytes, number);
}

}  // namespace

void ResumableSession::send(Lane lane, std::span<const std::byte> content) {
  if (content.size() > max_bytes)
    throw InvalidArgument(fmt::format("a message has {} bytes; the limit is {}", content.size(), max_bytes));
  Outgoing& outgoing = outgoing_[static_cast<std::size_t>(lane)];
  kept_bytes_ += content.size();
  do {
    const auto piece = content.first(std::min(content.size(), max_piece_bytes));
    content = content.subspan(piece.size());
    outgoing.kept.push_back({Bytes(piece.begin(), piece.end()), content.empty()});
  } while (!content.empty());
}

void ResumableSession::connect(TimePoint now) { connection_ = Connection{.last_heard = now, .last_output = now}; }

void ResumableSession::disconnect() { connection_.reset(); }

std::size_t ResumableSession::kept_pieces() const {
  std::size_t count = 0;
  for (const Outgoing& outgoing : outgoing_) count += outgoing.kept.size();
  return count;
}

void ResumableSession::receive(std::span<const std::byte> bytes, TimePoint now, std::vector<LaneMessage>& messages) {
  if (!connection_ || bytes.empty()) return;
  connection_->last_heard = now;
  Bytes& input = connection_->input;
  std::span<const std::byte> rest = bytes;
  if (!input.empty()) {
    input.insert(input.end(), bytes.begin(), bytes.end());
    rest = input;
  }
  while (rest.size() >= kLengthBytes) {
    const auto length = read_number<std::uint32_t>(rest);
    if (length < kHeaderBytes || length > kHeaderBytes + max_piece_bytes)
      throw ProtocolError(fmt::format("a frame has the length {}", length));
    if (rest.size() < kLengthBytes + length) break;
    receive_frame(rest.subspan(kLengthBytes, length), now, messages);
    rest = rest.subspan(kLengthBytes + length);
  }
  connection_->input = Bytes(rest.begin(), rest.end());
}

void ResumableSession::receive_frame(std::span<const std::byte> frame, TimePoint now,
                                     std::vector<LaneMessage>& messages) {
  const auto kind = std::to_integer<std::uint8_t>(frame[0]);
  const auto lane = std::to_integer<std::uint8_t>(frame[1]);
  const auto last = std::to_integer<std::uint8_t>(frame[2]);
  const auto number = read_number<std::uint64_t>(frame.subspan(4));
  const auto content = frame.subspan(kHeaderBytes);
  const bool is_piece = kind == static_cast<std::uint8_t>(Kind::piece);
  if (kind > static_cast<std::uint8_t>(Kind::acknowledgement) || lane >= num_lanes || last > 1 ||
      frame[3] != std::byte{0} || (!is_piece && (lane != 0 || last != 0 || content.size() != kCountsBytes)))
    throw ProtocolError("a frame is none of a greeting, a piece and an acknowledgement");
  if (kind == static_cast<std::uint8_t>(Kind::greeting)) return receive_greeting(number, content);
  if (!connection_->is_greeted) throw ProtocolError("a connection does not begin with a greeting");
  if (!is_piece) return acknowledge(content);
  receive_piece(static_cast<Lane>(lane), last == 1, number, content, now, messages);
}

void ResumableSession::receive_greeting(std::uint64_t number, std::span<const std::byte> counts) {
  if (connection_->is_greeted) throw ProtocolError("a connection has two greetings");
  if (number != number_) throw ProtocolError("the other end is in another session");
  acknowledge(counts);
  connection_->is_greeted = true;
  for (Outgoing& outgoing : outgoing_) outgoing.next = 0;
}

void ResumableSession::acknowledge(std::span<const std::byte> counts) {
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    Outgoing& outgoing = outgoing_[lane];
    const auto count = read_number<std::uint64_t>(counts.subspan(8 * lane));
    if (count + 1 < outgoing.first || count > outgoing.written)
      throw ProtocolError(fmt::format("{} pieces are acknowledged, where {} were already and {} were sent", count,
                                      outgoing.first - 1, outgoing.written));
    for (; outgoing.first <= count; ++outgoing.first) {
      kept_bytes_ -= outgoing.kept.front().content.size();
      outgoing.kept.pop_front();
      outgoing.next -= std::min<std::size_t>(outgoing.next, 1);
    }
  }
}

void ResumableSession::receive_piece(Lane lane, bool is_last, std::uint64_t number, std::span<const std::byte> content,
                                     TimePoint now, std::vector<LaneMessage>& messages) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(lane)];
  if (number <= incoming.received) return;  // sent again
  if (number != incoming.received + 1)
    throw ProtocolError(fmt::format("piece {} of a lane comes after piece {}", number, incoming.received));
  if (incoming.message.size() + content.size() > max_bytes)
    throw ProtocolError(fmt::format("a message has more than {} bytes", max_bytes));
  incoming.received = number;
  incoming.message.insert(incoming.message.end(), content.begin(), content.end());
  if (is_last) messages.push_back({lane, std::exchange(incoming.message, {})});
  ++connection_->unacknowledged;
  connection_->unacknowledged_bytes += content.size();
  if (!connection_->acknowledge_by) connection_->acknowledge_by = now + acknowledgement_delay;
}

std::span<const std::byte> ResumableSession::output(TimePoint now) {
  if (!connection_) return {};
  Connection& connection = *connection_;
  if (connection.written == connection.output.size()) {
    connection.output.clear();
    connection.written = 0;
    if (!connection.has_greeted) {
      write_counts(Kind::greeting, number_, now);
      connection.has_greeted = true;
    } else if (const auto next = next_output(); next && *next <= now) {
      write_counts(Kind::acknowledgement, 0, now);
    }
    if (connection.is_greeted && write_pieces()) connection.last_output = now;
  }
  return std::span<const std::byte>(connection.output).subspan(connection.written);
}

void ResumableSession::write_counts(Kind kind, std::uint64_t number, TimePoint now) {
  Bytes& output = connection_->output;
  append_header(output, static_cast<std::uint8_t>(kind), 0, false, number, kCountsBytes);
  for (const Incoming& incoming : incoming_) append_number(output, incoming.received);
  connection_->unacknowledged = connection_->unacknowledged_bytes = 0;
  connection_->acknowledge_by.reset();
  connection_->last_output = now;
}

// Returns true if there are any.
bool ResumableSession::write_pieces() {
  Bytes& output = connection_->output;
  const std::size_t before = output.size();
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    Outgoing& outgoing = outgoing_[lane];
    for (; outgoing.next < outgoing.kept.size() && output.size() < kOutputBytes; ++outgoing.next) {
      const Piece& piece = outgoing.kept[outgoing.next];
      const std::uint64_t number = outgoing.first + outgoing.next;
      append_header(output, static_cast<std::uint8_t>(Kind::piece), lane, piece.is_last, number, piece.content.size());
      output.insert(output.end(), piece.content.begin(), piece.content.end());
      outgoing.written = std::max(outgoing.written, number);
    }
  }
  return output.size() > before;
}

void ResumableSession::written(std::size_t bytes) {
  if (connection_) connection_->written = std::min(connection_->written + bytes, connection_->output.size());
}

std::optional<ResumableSession::TimePoint> ResumableSession::next_output() const {
  if (!connection_ || (connection_->has_greeted && !connection_->is_greeted)) return std::nullopt;
  if (!connection_->has_greeted) return TimePoint::min();
  if (connection_->written < connection_->output.size()) return std::nullopt;  // the other end reads that first
  if (connection_->unacknowledged >= pieces_per_acknowledgement ||
      connection_->unacknowledged_bytes >= bytes_per_acknowledgement)
    return TimePoint::min();
  const TimePoint next = connection_->last_output + heartbeat;
  return connection_->acknowledge_by ? std::min(next, *connection_->acknowledge_by) : next;
}

}  // namespace cadre::channel
