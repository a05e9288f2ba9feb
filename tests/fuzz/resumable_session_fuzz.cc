// A hostile other end of a session: any stream of bytes gives messages and at most one error, the same however the
// bytes are cut; and any connections that break anywhere lose, double and reorder nothing.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "channel/resumable_session.h"
#include "fuzz/require.h"

using namespace cadre;
using channel::Bytes;
using channel::Lane;
using channel::LaneMessage;
using channel::ResumableSession;
using fuzz::require;

namespace {

constexpr ResumableSession::TimePoint kNow{};
constexpr std::uint64_t kNumber = 7;

Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Received {
  std::vector<LaneMessage> messages = {};
  bool complained = false;
  bool operator==(const Received&) const = default;
};

// An end that has sent something, and receives a stream, cut by `next_piece`.
template <typename NextPiece>
Received receive(std::span<const std::byte> stream, NextPiece next_piece) {
  ResumableSession session(kNumber);
  session.send(Lane::reports, to_bytes("mine"));
  session.connect(kNow);
  Received received;
  try {
    while (!stream.empty()) {
      session.written(session.output(kNow).size());
      const std::size_t piece = std::min(stream.size(), next_piece(stream.size()));
      session.receive(stream.first(piece), kNow, received.messages);
      stream = stream.subspan(piece);
    }
  } catch (const channel::ProtocolError&) {
    received.complained = true;
  }
  return received;
}

void check_hostile_end(FuzzedDataProvider& data) {
  Bytes stream;
  if (data.ConsumeBool()) {
    ResumableSession peer(kNumber);
    peer.connect(kNow);
    const auto greeting = peer.output(kNow);
    stream.assign(greeting.begin(), greeting.end());
  }
  const auto made_up = data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 4096));
  for (const std::uint8_t byte : made_up) stream.push_back(std::byte{byte});
  const Received in_pieces = receive(stream, [&](std::size_t rest) {
    return data.ConsumeIntegralInRange<std::size_t>(1, std::max<std::size_t>(1, rest));
  });
  require(in_pieces == receive(stream, [](std::size_t) { return std::size_t{1}; }), "cuts change nothing");
}

void check_broken_connections(FuzzedDataProvider& data) {
  std::array<ResumableSession, 2> ends{ResumableSession(kNumber), ResumableSession(kNumber)};
  std::array<Bytes, 2> on_their_way = {};
  std::array<std::array<std::vector<Bytes>, channel::num_lanes>, 2> sent = {};
  std::array<std::array<std::vector<Bytes>, channel::num_lanes>, 2> received = {};
  const auto reconnect = [&] {
    for (const std::size_t end : {0u, 1u}) {
      ends[end].connect(kNow);
      on_their_way[end].clear();
    }
  };
  const auto move = [&](std::size_t from, std::size_t written, std::size_t delivered) {
    const auto output = ends[from].output(kNow);
    written = std::min(written, output.size());
    Bytes& way = on_their_way[1 - from];
    way.insert(way.end(), output.begin(), output.begin() + static_cast<std::ptrdiff_t>(written));
    ends[from].written(written);
    delivered = std::min(delivered, way.size());
    std::vector<LaneMessage> messages;
    ends[1 - from].receive(std::span(way).first(delivered), kNow, messages);
    for (LaneMessage& message : messages)
      received[1 - from][static_cast<std::size_t>(message.lane)].push_back(std::move(message.content));
    way.erase(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(delivered));
    return written + delivered;
  };
  while (data.remaining_bytes() > 0) {
    const std::size_t end = data.ConsumeBool() ? 1 : 0;
    switch (data.ConsumeIntegralInRange(0, 3)) {
      case 0: {
        const auto lane = data.ConsumeIntegralInRange<std::size_t>(0, channel::num_lanes - 1);
        const Bytes content = to_bytes(data.ConsumeRandomLengthString(64));
        ends[end].send(static_cast<Lane>(lane), content);
        sent[end][lane].push_back(content);
        break;
      }
      case 1:
        reconnect();
        break;
      default:
        move(end, data.ConsumeIntegral<std::uint8_t>(), data.ConsumeIntegral<std::uint8_t>());
    }
  }
  reconnect();
  constexpr std::size_t all = std::size_t{1} << 30;
  while (move(0, all, all) + move(1, all, all) > 0) {
  }
  require(received[0] == sent[1] && received[1] == sent[0], "nothing is lost, doubled or reordered");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  if (data.ConsumeBool()) {
    check_hostile_end(data);
  } else {
    check_broken_connections(data);
  }
  return 0;
}
