#include "channel/frame.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace cadre::channel {
namespace {

constexpr std::size_t smallest_buffer = 4096;

}  // namespace

std::span<std::byte> FrameReader::space() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > max_idle_bytes) Bytes().swap(buffer_);
  }
  if (buffer_.empty()) buffer_.resize(smallest_buffer);
  const std::size_t wanted = frame_bytes().value_or(frame_header_bytes);
  if (begin_ > 0 && begin_ + wanted > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(wanted > end_ ? std::min(wanted, 2 * end_) : 2 * end_);
  return std::span(buffer_).subspan(end_);
}

void FrameReader::received(std::size_t bytes) { end_ += bytes; }

std::optional<std::span<const std::byte>> FrameReader::next() {
  const std::optional<std::size_t> bytes = frame_bytes();
  if (!bytes || end_ - begin_ < *bytes) return std::nullopt;
  const auto body =
      std::span<const std::byte>(buffer_).subspan(begin_ + frame_header_bytes, *bytes - frame_header_bytes);
  begin_ += *bytes;
  return body;
}

std::optional<std::size_t> FrameReader::frame_bytes() const {
  if (end_ - begin_ < frame_header_bytes) return std::nullopt;
  std::uint32_t header[2];
  std::memcpy(header, buffer_.data() + begin_, sizeof header);
  if (header[0] != frame_magic) {
    throw ProtocolError("a message does not start with the mark of one; something else was written to the connection");
  }
  if (header[1] > max_message_bytes || header[1] % 8 != 0) {
    throw ProtocolError("a message claims to have " + std::to_string(header[1]) + " bytes; the limit is " +
                        std::to_string(max_message_bytes) + ", in multiples of 8");
  }
  return frame_header_bytes + header[1];
}

}  // namespace cadre::channel
