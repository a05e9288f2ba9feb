// Frames, which separate messages on a stream of bytes.
//
// A frame is an eight-byte header (the magic number and the number of bytes that follow, both 32 bits, little-endian)
// and a message in Cap'n Proto's standard stream format, which contains the number of its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/value_limits.h"
#include "cadre/error.h"

namespace cadre::channel {

inline constexpr std::uint32_t frame_magic = 0x31524443;  // "CDR1"
inline constexpr std::size_t frame_header_bytes = 8;
using base::max_message_bytes;
// Larger buffers are freed when they are empty.
inline constexpr std::size_t max_idle_bytes = std::size_t{256} << 10;

using Bytes = std::vector<std::byte>;

// Thrown if the other end sent bytes that are not a message, or a message of another protocol version.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

// A buffer that collects received bytes and returns whole messages. It grows with the bytes received, not with the
// size in a header, and is freed after a large message.
class FrameReader {
 public:
  // Returns the space for the next bytes of the stream; never empty.
  std::span<std::byte> space();
  // Records that `bytes` bytes were written at the front of the last space().
  void received(std::size_t bytes);
  // Returns the next whole message, aligned to eight bytes and valid until the next call of a member; empty if it has
  // not arrived completely. Throws ProtocolError if the header is invalid or its size exceeds max_message_bytes.
  std::optional<std::span<const std::byte>> next();

 private:
  std::optional<std::size_t> frame_bytes() const;

  Bytes buffer_;
  std::size_t begin_ = 0;  // of the bytes not yet returned
  std::size_t end_ = 0;    // of the bytes received
};

}  // namespace cadre::channel
