// Encodes messages as bytes and decodes them.
//
// Limits (base/value_limits.h), checked on both sides: max_message_bytes per message; max_value_depth levels of lists
// and dictionaries per value; max_result_bytes and max_result_depth for a Report.
#pragma once

#include <span>

#include "channel/frame.h"
#include "channel/message.h"

namespace cadre::channel {

// Replaces `frame` with the whole frame of a message and reuses its memory. Throws InvalidArgument if the message
// exceeds a limit.
void encode(const Assignment& assignment, Bytes& frame);
void encode(const Answer& answer, Bytes& frame);
void encode(const StoreReply& reply, Bytes& frame);
void encode(const Reply& reply, Bytes& frame);
void encode(const Report& report, Bytes& frame);
void encode(const Finished& finished, Bytes& frame);
void encode(const Failed& failed, Bytes& frame);
void encode(const Declined& declined, Bytes& frame);
void encode(const StoreRequest& request, Bytes& frame);
void encode(const Request& request, Bytes& frame);
void encode(const Notice& notice, Bytes& frame);

// Decode a body returned by FrameReader. Input is not trusted: throws ProtocolError if it is not a message of this
// version within the limits.
Message decode_message(std::span<const std::byte> body);  // from a worker
FromController decode_from_controller(std::span<const std::byte> body);
// Returns true for the body of a message after which a worker sends nothing; reads nothing else of it. False for other
// bytes.
bool is_last_message(std::span<const std::byte> body) noexcept;

}  // namespace cadre::channel
