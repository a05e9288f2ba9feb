// A session of messages between two processes over connections that may break and come back. Messages are numbered and
// kept until the other end has acknowledged them, so none is lost, doubled or reordered. Pure: the caller has the
// connections, the threads and the clock.
//
// A connection is a stream of frames in both directions. All numbers are little-endian:
//
//   length    u32  bytes that follow
//   kind      u8   0: greeting, 1: piece of a message, 2: acknowledgement
//   lane      u8   of a piece; otherwise 0
//   is_last   u8   1 in the last piece of a message; otherwise 0
//   (unused)  u8   0
//   number    u64  of a piece in its lane, from 1; of a greeting, the session's
//   content        of a piece, its bytes; otherwise the number of pieces that were received in each lane, u64 each
//
// Each end begins a connection with a greeting. Pieces that the other end's greeting does not count are sent again.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "channel/frame.h"

namespace cadre::channel {

// Messages arrive in the order in which they were sent in their lane. An earlier lane overtakes a later one: a long
// message in a later lane is cut into pieces, between which the others pass.
enum class Lane : std::uint8_t { control, reports, files, output };
inline constexpr std::size_t num_lanes = 4;

struct LaneMessage {
  Lane lane = Lane::control;
  Bytes content = {};
  bool operator==(const LaneMessage&) const = default;
};

class ResumableSession {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // An end that has sent nothing for this time sends an acknowledgement, by which the other end knows that it lives.
  static constexpr auto heartbeat = std::chrono::seconds(1);
  // Pieces are acknowledged after so many, so many bytes of them, or after this time.
  static constexpr std::size_t pieces_per_acknowledgement = 64;
  static constexpr std::size_t bytes_per_acknowledgement = std::size_t{512} << 10;
  static constexpr auto acknowledgement_delay = std::chrono::milliseconds(200);
  static constexpr std::size_t max_piece_bytes = std::size_t{256} << 10;
  // A message of the channel, and what carries it.
  static constexpr std::size_t max_bytes = max_message_bytes + (std::size_t{1} << 20);

  // `number`: the same at both ends, and another one for each session of theirs.
  explicit ResumableSession(std::uint64_t number) : number_(number) {}

  // Sends a message as soon as there is a connection. Throws InvalidArgument for one of more than max_bytes.
  void send(Lane lane, std::span<const std::byte> content);

  // Call connect() when there is a new connection, and disconnect() when it is gone. Messages stay.
  void connect(TimePoint now);
  void disconnect();
  bool is_connected() const { return connection_.has_value(); }
  // Returns true if the other end has greeted in this connection: it is one of this session.
  bool is_greeted() const { return connection_ && connection_->is_greeted; }

  // Handles bytes that have arrived, cut in any way, and appends messages that are complete. Throws ProtocolError if
  // they are not what the other end of this session sends; the connection is then of no use any more. What was appended
  // before is not sent again.
  void receive(std::span<const std::byte> bytes, TimePoint now, std::vector<LaneMessage>& messages);

  // Returns bytes to be written to the connection; empty if there are none at this time. Valid until the next call of a
  // member.
  std::span<const std::byte> output(TimePoint now);
  // Records that the first `bytes` bytes of the last output() were written.
  void written(std::size_t bytes);
  // Returns when output() has something again though nothing is sent; empty where that depends on the other end.
  std::optional<TimePoint> next_output() const;

  // Returns when something was received in this connection last, or its begin.
  TimePoint last_heard() const { return connection_->last_heard; }

  // Return how much is kept because the other end has not acknowledged it. A caller that wants limits ends the session.
  std::size_t kept_bytes() const { return kept_bytes_; }
  std::size_t kept_pieces() const;

 private:
  struct Piece {
    Bytes content;
    bool is_last;
  };
  struct Outgoing {
    std::deque<Piece> kept = {};  // not acknowledged
    std::uint64_t first = 1;      // number of the first that is kept
    std::size_t next = 0;         // index of the next to be written in this connection
    std::uint64_t written = 0;    // number of the last that was ever written
  };
  struct Incoming {
    std::uint64_t received = 0;  // number of the last piece
    Bytes message = {};          // pieces of a message that is not complete
  };
  struct Connection {
    Bytes input = {};   // of a frame that has not arrived completely
    Bytes output = {};  // frames that are being written
    std::size_t written = 0;
    bool has_greeted = false;        // this end
    bool is_greeted = false;         // by the other end
    std::size_t unacknowledged = 0;  // pieces
    std::size_t unacknowledged_bytes = 0;
    std::optional<TimePoint> acknowledge_by = {};
    TimePoint last_heard;
    TimePoint last_output;
  };
  enum class Kind : std::uint8_t { greeting, piece, acknowledgement };

  void receive_frame(std::span<const std::byte> frame, TimePoint now, std::vector<LaneMessage>& messages);
  void receive_piece(Lane lane, bool is_last, std::uint64_t number, std::span<const std::byte> content, TimePoint now,
                     std::vector<LaneMessage>& messages);
  void receive_greeting(std::uint64_t number, std::span<const std::byte> counts);
  void acknowledge(std::span<const std::byte> counts);
  void write_counts(Kind kind, std::uint64_t number, TimePoint now);
  bool write_pieces();

  std::uint64_t number_;
  std::array<Outgoing, num_lanes> outgoing_ = {};
  std::array<Incoming, num_lanes> incoming_ = {};
  std::optional<Connection> connection_ = {};
  std::size_t kept_bytes_ = 0;
};

}  // namespace cadre::channel
