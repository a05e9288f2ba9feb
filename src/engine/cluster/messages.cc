#include "engine/cluster/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "cadre/stored.h"
#include "channel/little_endian.h"

namespace cadre {

// The assignment follows as it is.
template <>
inline constexpr auto kNotStored<engine::WorkerSpec> = member_list("assignment", "node");
// So do the bytes of files.
template <>
inline constexpr auto kNotStored<engine::cluster::Piece> = member_list("bytes");
template <>
inline constexpr auto kNotStored<engine::cluster::Printed> = member_list("bytes");

}  // namespace cadre

namespace cadre::engine::cluster {
namespace {

using channel::Bytes;
using channel::ProtocolError;

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;

template <class Variant, class Message, std::size_t Index = 0>
constexpr std::uint8_t kind_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<Index, Variant>, Message>) {
    return Index;
  } else {
    return kind_of<Variant, Message, Index + 1>();
  }
}

void begin(std::uint8_t kind, WorkerId worker, Bytes& bytes) {
  bytes.assign(8, std::byte{0});
  bytes[0] = static_cast<std::byte>(kind);
  channel::append_number(bytes, worker);
}

template <class Message>
void append_frame(const Message& message, Bytes& bytes) {
  static thread_local Bytes frame;
  channel::encode(message, frame);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  if (frame.size() > channel::max_idle_bytes) Bytes().swap(frame);
}

void append_json(const Value& value, Bytes& bytes) {
  std::string text;
  base::append_json(text, value);
  channel::append_number(bytes, std::uint64_t{text.size()});
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), first, first + text.size());
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
}

void append_framed(std::span<const std::byte> body, Bytes& bytes) {
  channel::append_number(bytes, channel::frame_magic);
  channel::append_number(bytes, static_cast<std::uint32_t>(body.size()));
  bytes.insert(bytes.end(), body.begin(), body.end());
}

template <class Message>
void encode_with_bytes(std::uint8_t kind, const Message& message, Bytes& bytes) {
  begin(kind, 0, bytes);
  append_json(to_stored(message), bytes);
  append_framed(message.bytes, bytes);
}

template <class Message>
void encode_json(std::uint8_t kind, const Message& message, Bytes& bytes) {
  begin(kind, 0, bytes);
  append_json(to_stored(message), bytes);
}

// Reads the rest of a message from its front.
class Rest {
 public:
  explicit Rest(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take_json() {
    if (bytes_.size() < kLengthBytes) throw ProtocolError("a message of a node is too short");
    const std::uint64_t length = channel::read_number<std::uint64_t>(bytes_);
    if (length > bytes_.size() - kLengthBytes) throw ProtocolError("a message of a node is too short");
    const std::string text(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, length);
    const std::size_t taken = (kLengthBytes + length + kAlignment - 1) / kAlignment * kAlignment;
    bytes_ = bytes_.subspan(std::min(taken, bytes_.size()));
    T object;
    try {
      from_stored(object, Stored(base::parse_json(text, "a message of a node")));
    } catch (const StorageError& error) {
      throw ProtocolError(error.what());
    } catch (const InvalidArgument& error) {
      throw ProtocolError(fmt::format("a message of a node cannot be read: {}", error.what()));
    }
    return object;
  }

  template <class T>
  T take_with_bytes() {
    T object = take_json<T>();
    object.bytes = body();
    return object;
  }

  // Returns the frame that is the whole rest.
  std::span<const std::byte> frame() const {
    if (bytes_.size() < channel::frame_header_bytes) throw ProtocolError("a message of a node has no frame");
    const std::uint64_t header = channel::read_number<std::uint64_t>(bytes_);
    const std::size_t length = header >> 32;
    if ((header & 0xffffffff) != channel::frame_magic || length != bytes_.size() - channel::frame_header_bytes)
      throw ProtocolError("a message of a node has no whole frame");
    return bytes_;
  }
  std::span<const std::byte> body() const { return frame().subspan(channel::frame_header_bytes); }

 private:
  std::span<const std::byte> bytes_;
};

struct Header {
  std::uint8_t kind;
  WorkerId worker;
};

Header read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) throw ProtocolError("a message of a node is too short");
  return {std::to_integer<std::uint8_t>(bytes[0]), channel::read_number<std::uint64_t>(bytes.subspan(8))};
}

}  // namespace

void encode_start(WorkerId worker, const WorkerSpec& spec, Bytes& bytes) {
  begin(kind_of<ToAgent, Start>(), worker, bytes);
  append_json(to_stored(spec), bytes);
  append_frame(spec.assignment, bytes);
}

template <class Message>
void encode_tell(WorkerId worker, const Message& message, Bytes& bytes) {
  begin(kind_of<ToAgent, Tell>(), worker, bytes);
  append_frame(message, bytes);
}
template void encode_tell(WorkerId, const channel::Answer&, Bytes&);
template void encode_tell(WorkerId, const channel::StoreReply&, Bytes&);
template void encode_tell(WorkerId, const channel::Reply&, Bytes&);

void encode(const Kill& kill, Bytes& bytes) { begin(kind_of<ToAgent, Kill>(), kill.worker, bytes); }
void encode(const Leave&, Bytes& bytes) { begin(kind_of<ToAgent, Leave>(), 0, bytes); }

void encode(const Stay& stay, Bytes& bytes) { encode_json(kind_of<ToAgent, Stay>(), stay, bytes); }
void encode(const Look& look, Bytes& bytes) { encode_json(kind_of<ToAgent, Look>(), look, bytes); }
void encode_to_agent(const Piece& piece, Bytes& bytes) { encode_with_bytes(kind_of<ToAgent, Piece>(), piece, bytes); }
void encode(const Fetch& fetch, Bytes& bytes) { encode_json(kind_of<ToAgent, Fetch>(), fetch, bytes); }
void encode(const Move& move, Bytes& bytes) { encode_json(kind_of<ToAgent, Move>(), move, bytes); }
void encode(const Drop& drop, Bytes& bytes) { encode_json(kind_of<ToAgent, Drop>(), drop, bytes); }

void encode(const UseStorage& use, Bytes& bytes) { encode_json(kind_of<ToAgent, UseStorage>(), use, bytes); }
void encode(const StoreFiles& store, Bytes& bytes) { encode_json(kind_of<ToAgent, StoreFiles>(), store, bytes); }
void encode(const LoadFiles& load, Bytes& bytes) { encode_json(kind_of<ToAgent, LoadFiles>(), load, bytes); }

void encode(const Told& told, Bytes& bytes) {
  begin(kind_of<ToController, Told>(), told.worker, bytes);
  append_framed(told.body, bytes);
}

void encode(const Exited& exited, Bytes& bytes) {
  begin(kind_of<ToController, Exited>(), exited.worker, bytes);
  append_json(to_stored(exited.exit), bytes);
}

void encode(const Draining& draining, Bytes& bytes) { encode_json(kind_of<ToController, Draining>(), draining, bytes); }
void encode(const Saw& saw, Bytes& bytes) { encode_json(kind_of<ToController, Saw>(), saw, bytes); }
void encode_to_controller(const Piece& piece, Bytes& bytes) {
  encode_with_bytes(kind_of<ToController, Piece>(), piece, bytes);
}
void encode(const Printed& printed, Bytes& bytes) {
  encode_with_bytes(kind_of<ToController, Printed>(), printed, bytes);
}
void encode(const Left&, Bytes& bytes) { begin(kind_of<ToController, Left>(), 0, bytes); }
void encode(const TriedStorage& tried, Bytes& bytes) {
  encode_json(kind_of<ToController, TriedStorage>(), tried, bytes);
}
void encode(const FilesStored& stored, Bytes& bytes) {
  encode_json(kind_of<ToController, FilesStored>(), stored, bytes);
}
void encode(const FilesLoaded& loaded, Bytes& bytes) {
  encode_json(kind_of<ToController, FilesLoaded>(), loaded, bytes);
}

ToAgent decode_to_agent(std::span<const std::byte> bytes) {
  const auto [kind, worker] = read_header(bytes);
  Rest rest(bytes.subspan(kHeaderBytes));
  switch (kind) {
    case kind_of<ToAgent, Start>(): {
      Start start{worker, rest.take_json<WorkerSpec>()};
      channel::FromController assignment = channel::decode_from_controller(rest.body());
      if (auto* found = std::get_if<channel::Assignment>(&assignment)) {
        start.spec.assignment = std::move(*found);
        return start;
      }
      throw ProtocolError("a worker is to be started without an assignment");
    }
    case kind_of<ToAgent, Tell>():
      return Tell{worker, rest.frame()};
    case kind_of<ToAgent, Kill>():
      return Kill{worker};
    case kind_of<ToAgent, Leave>():
      return Leave{};
    case kind_of<ToAgent, Stay>():
      return rest.take_json<Stay>();
    case kind_of<ToAgent, Look>():
      return rest.take_json<Look>();
    case kind_of<ToAgent, Piece>():
      return rest.take_with_bytes<Piece>();
    case kind_of<ToAgent, Fetch>():
      return rest.take_json<Fetch>();
    case kind_of<ToAgent, Move>():
      return rest.take_json<Move>();
    case kind_of<ToAgent, Drop>():
      return rest.take_json<Drop>();
    case kind_of<ToAgent, UseStorage>():
      return rest.take_json<UseStorage>();
    case kind_of<ToAgent, StoreFiles>():
      return rest.take_json<StoreFiles>();
    case kind_of<ToAgent, LoadFiles>():
      return rest.take_json<LoadFiles>();
    default:
      throw ProtocolError(fmt::format("a message to a node has the unknown kind {}", kind));
  }
}

ToController decode_to_controller(std::span<const std::byte> bytes) {
  const auto [kind, worker] = read_header(bytes);
  Rest rest(bytes.subspan(kHeaderBytes));
  switch (kind) {
    case kind_of<ToController, Told>():
      return Told{worker, rest.body()};
    case kind_of<ToController, Exited>():
      return Exited{worker, rest.take_json<Exit>()};
    case kind_of<ToController, Draining>():
      return rest.take_json<Draining>();
    case kind_of<ToController, Saw>():
      return rest.take_json<Saw>();
    case kind_of<ToController, Piece>():
      return rest.take_with_bytes<Piece>();
    case kind_of<ToController, Printed>():
      return rest.take_with_bytes<Printed>();
    case kind_of<ToController, Left>():
      return Left{};
    case kind_of<ToController, TriedStorage>():
      return rest.take_json<TriedStorage>();
    case kind_of<ToController, FilesStored>():
      return rest.take_json<FilesStored>();
    case kind_of<ToController, FilesLoaded>():
      return rest.take_json<FilesLoaded>();
    default:
      throw ProtocolError(fmt::format("a message of a node has the unknown kind {}", kind));
  }
}

}  // namespace cadre::engine::cluster
