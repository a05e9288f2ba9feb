// Frames: what separates one message from the next on a stream of bytes.
//
// A frame is eight bytes (the magic number, then the number of bytes that follow, both 32 bits, little-endian) and a
// message in Cap'n Proto's standard stream format, which says how many segments it has.
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
// Of the memory of a large message nothing is kept.
inline constexpr std::size_t max_idle_bytes = std::size_t{256} << 10;

using Bytes = std::vector<std::byte>;

// The other end sent what is no message, or one of another version.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

// Collects what arrives and hands out whole messages. Its memory grows with what has arrived, not with what a header
// promises, and is given back after a large message.
class FrameReader {
 public:
  // Where the next bytes of the stream go; never empty.
  std::span<std::byte> space();
  // That many bytes were put at the front of the last space().
  void received(std::size_t bytes);
  // The next whole message, aligned to eight bytes and good until the next call of anything here; empty when it has
  // not arrived. Throws ProtocolError for a header that is none or promises more than max_message_bytes.
  std::optional<std::span<const std::byte>> next();

 private:
  std::optional<std::size_t> frame_bytes() const;

  Bytes buffer_;
  std::size_t begin_ = 0;  // of what was not handed out
  std::size_t end_ = 0;    // of what has arrived
};

}  // namespace cadre::channel
