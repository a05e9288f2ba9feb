#include "channel/resumable_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::channel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using TimePoint = ResumableSession::TimePoint;

Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string to_text(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Two ends of a session, and what is on its way in a connection of theirs.
struct Network {
  struct End {
    ResumableSession session{7};
    Bytes on_its_way = {};  // to this end
    std::array<std::vector<std::string>, num_lanes> received = {};
    std::array<std::vector<std::string>, num_lanes> sent = {};  // by this end
  };

  std::array<End, 2> ends = {};
  TimePoint now = TimePoint(seconds(100));

  void connect() {
    for (End& end : ends) {
      end.session.connect(now);
      end.on_its_way.clear();
    }
  }
  void cut() {
    for (End& end : ends) {
      end.session.disconnect();
      end.on_its_way.clear();
    }
  }
  void send(std::size_t from, Lane lane, const std::string& text) {
    ends[from].session.send(lane, to_bytes(text));
    ends[from].sent[static_cast<std::size_t>(lane)].push_back(text);
  }
  // Writes at most so many bytes of an end's output into the connection; returns how many there were.
  std::size_t write(std::size_t from, std::size_t most) {
    const auto output = ends[from].session.output(now);
    const std::size_t count = std::min(most, output.size());
    Bytes& to = ends[1 - from].on_its_way;
    to.insert(to.end(), output.begin(), output.begin() + static_cast<std::ptrdiff_t>(count));
    ends[from].session.written(count);
    return count;
  }
  std::size_t deliver(std::size_t to, std::size_t most) {
    End& end = ends[to];
    const std::size_t count = std::min(most, end.on_its_way.size());
    std::vector<LaneMessage> messages;
    end.session.receive(std::span(end.on_its_way).first(count), now, messages);
    for (const LaneMessage& message : messages)
      end.received[static_cast<std::size_t>(message.lane)].push_back(to_text(message.content));
    end.on_its_way.erase(end.on_its_way.begin(), end.on_its_way.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  // Moves all that can move.
  void pump() {
    constexpr std::size_t all = std::size_t{1} << 40;
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::size_t end : {0u, 1u}) moved |= write(end, all) + deliver(end, all) > 0;
    }
  }
};

TEST(ResumableSession, MessagesArriveInTheOrderOfTheirLane) {
  Network network;
  network.send(0, Lane::reports, "before there is a connection");
  network.connect();
  network.pump();
  network.send(0, Lane::reports, "a");
  network.send(0, Lane::control, "");
  network.send(0, Lane::reports, "b");
  network.send(1, Lane::control, "answer");
  network.pump();
  EXPECT_EQ(network.ends[1].received, network.ends[0].sent);
  EXPECT_EQ(network.ends[0].received, network.ends[1].sent);
  network.now += milliseconds(300);
  network.pump();
  EXPECT_EQ(network.ends[0].session.kept_pieces(), 0u) << "all is acknowledged";
  EXPECT_EQ(network.ends[0].session.kept_bytes(), 0u);
}

TEST(ResumableSession, WhatAConnectionHasLostIsSentAgainAndWhatArrivedIsNot) {
  Network network;
  network.connect();
  network.pump();
  for (const char* text : {"one", "two", "three"}) network.send(0, Lane::reports, text);
  network.write(0, 1000);
  network.deliver(1, 16 + 3 + 16 + 2);  // the second not completely
  EXPECT_THAT(network.ends[1].received[1], ElementsAre("one"));
  network.cut();
  network.send(0, Lane::reports, "four");
  network.connect();
  network.pump();
  EXPECT_THAT(network.ends[1].received[1], ElementsAre("one", "two", "three", "four"));
}

TEST(ResumableSession, AMessageGoesOnFromThePieceThatArrivedLast) {
  Network network;
  network.connect();
  network.pump();
  const std::string text(3 * ResumableSession::max_piece_bytes + 1, 'x');
  network.send(0, Lane::files, text);
  for (int piece = 0; piece < 2; ++piece) {
    while (network.write(0, 1 << 30) > 0 && network.ends[1].on_its_way.size() < ResumableSession::max_piece_bytes) {
    }
    network.deliver(1, ResumableSession::max_piece_bytes + 16);
  }
  network.cut();
  network.connect();
  network.deliver(1, network.write(0, 1000));
  network.deliver(0, network.write(1, 1000));
  EXPECT_EQ(network.ends[0].session.kept_pieces(), 2u) << "two of four have arrived";
  network.pump();
  EXPECT_THAT(network.ends[1].received[2], ElementsAre(text));
}

TEST(ResumableSession, ALongMessageDoesNotHoldUpAnEarlierLane) {
  Network network;
  network.connect();
  network.pump();
  network.send(0, Lane::files, std::string(std::size_t{8} << 20, 'x'));
  network.write(0, 1000);
  network.send(0, Lane::control, "kill");
  std::size_t written = 1000;
  while (network.ends[1].received[0].empty()) {
    written += network.write(0, 1 << 30);
    network.deliver(1, 1 << 30);
  }
  EXPECT_LT(written, 3 * ResumableSession::max_piece_bytes);
  EXPECT_THAT(network.ends[1].received[2], IsEmpty());
}

TEST(ResumableSession, AnEndThatHasNothingToSayShowsThatItLives) {
  Network network;
  network.connect();
  network.pump();
  EXPECT_EQ(network.ends[0].session.next_output(), network.now + seconds(1));
  network.now += milliseconds(999);
  EXPECT_EQ(network.write(0, 1000), 0u);
  network.now += milliseconds(1);
  EXPECT_GT(network.write(0, 1000), 0u);
  network.deliver(1, 1000);
  EXPECT_EQ(network.ends[1].session.last_heard(), network.now);
  EXPECT_EQ(network.write(0, 1000), 0u) << "once";
}

TEST(ResumableSession, PiecesAreAcknowledgedAfterATimeOrANumber) {
  Network network;
  network.connect();
  network.pump();
  network.send(0, Lane::reports, "one");
  network.pump();
  EXPECT_EQ(network.ends[0].session.kept_pieces(), 1u);
  EXPECT_EQ(network.ends[1].session.next_output(), network.now + milliseconds(200));
  network.now += milliseconds(200);
  network.pump();
  EXPECT_EQ(network.ends[0].session.kept_pieces(), 0u);
  for (std::size_t i = 0; i < ResumableSession::pieces_per_acknowledgement; ++i) network.send(0, Lane::reports, "many");
  network.pump();
  EXPECT_EQ(network.ends[0].session.kept_pieces(), 0u);
  network.send(0, Lane::reports, std::string(ResumableSession::bytes_per_acknowledgement, 'x'));
  network.pump();
  EXPECT_EQ(network.ends[0].session.kept_bytes(), 0u);
}

// With a time in the past, a loop that waits until then would run without a pause.
TEST(ResumableSession, HasNothingDueWhileItsOutputCannotBeWritten) {
  Network network;
  network.connect();
  network.pump();
  network.send(0, Lane::files, "long");
  EXPECT_EQ(network.write(0, 1), 1u);
  network.now += seconds(2);
  EXPECT_EQ(network.ends[0].session.next_output(), std::nullopt);
  EXPECT_GT(network.write(0, 1000), 0u);
  EXPECT_EQ(network.ends[0].session.next_output(), network.now - seconds(1));
}

TEST(ResumableSession, WithoutTheOtherEndsGreetingNothingIsSent) {
  ResumableSession session(1);
  EXPECT_EQ(session.next_output(), std::nullopt);
  EXPECT_TRUE(session.output(TimePoint()).empty());
  session.send(Lane::control, to_bytes("a"));
  session.connect(TimePoint());
  const std::size_t greeting = session.output(TimePoint()).size();
  session.written(greeting);
  EXPECT_EQ(greeting, 16u + 32u);
  EXPECT_TRUE(session.output(TimePoint(seconds(10))).empty());
  EXPECT_EQ(session.next_output(), std::nullopt);
  EXPECT_FALSE(session.is_greeted());
}

// Returns the message of the ProtocolError with which an end refuses bytes of another one.
std::string refusal(ResumableSession& session, std::span<const std::byte> bytes) {
  std::vector<LaneMessage> messages;
  try {
    session.receive(bytes, TimePoint(), messages);
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ResumableSession, WhatIsNotOfThisSessionIsRefused) {
  ResumableSession session(1);
  ResumableSession other(2);
  session.connect(TimePoint());
  other.connect(TimePoint());
  EXPECT_THAT(refusal(session, other.output(TimePoint())), HasSubstr("another session"));

  Bytes greeting;
  {
    ResumableSession peer(1);
    peer.connect(TimePoint());
    const auto bytes = peer.output(TimePoint());
    greeting.assign(bytes.begin(), bytes.end());
  }
  const auto greeted = [&] {
    session.connect(TimePoint());
    std::vector<LaneMessage> messages;
    session.receive(greeting, TimePoint(), messages);
  };
  const auto changed = [](Bytes bytes, std::size_t index, std::uint8_t value) {
    bytes[index] = std::byte{value};
    return bytes;
  };
  greeted();
  EXPECT_THAT(refusal(session, greeting), HasSubstr("two greetings"));
  session.connect(TimePoint());
  EXPECT_THAT(refusal(session, changed(greeting, 4, 2)), HasSubstr("does not begin with a greeting"));
  session.connect(TimePoint());
  EXPECT_THAT(refusal(session, changed(greeting, 4, 3)), HasSubstr("none of"));
  session.connect(TimePoint());
  EXPECT_THAT(refusal(session, changed(greeting, 16, 1)), HasSubstr("1 pieces are acknowledged"));
  session.connect(TimePoint());
  EXPECT_THAT(refusal(session, changed(greeting, 3, 255)), HasSubstr("length"));
  greeted();
  const Bytes piece = changed(changed(Bytes(greeting.begin(), greeting.begin() + 16), 4, 1), 0, 12);
  EXPECT_THAT(refusal(session, changed(piece, 8, 2)), HasSubstr("piece 2 of a lane comes after piece 0"));
  greeted();
  EXPECT_EQ(refusal(session, changed(piece, 8, 1)), "accepted");
  EXPECT_EQ(refusal(session, changed(piece, 8, 1)), "accepted") << "the same again is dropped";
  EXPECT_THROW(session.send(Lane::control, Bytes(ResumableSession::max_bytes + 1)), InvalidArgument);
}

// It is not sent again.
TEST(ResumableSession, WhatHasArrivedBeforeABadFrameIsThere) {
  Network network;
  network.connect();
  network.pump();
  for (const char* text : {"one", "two"}) network.send(0, Lane::reports, text);
  network.write(0, 1 << 20);
  Bytes& on_its_way = network.ends[1].on_its_way;
  on_its_way.insert(on_its_way.end(), 4, std::byte{0xFF});
  std::vector<LaneMessage> messages;
  EXPECT_THROW(network.ends[1].session.receive(on_its_way, network.now, messages), ProtocolError);
  for (const LaneMessage& message : messages) network.ends[1].received[1].push_back(to_text(message.content));
  EXPECT_THAT(network.ends[1].received[1], ElementsAre("one", "two"));
  network.cut();
  network.send(0, Lane::reports, "three");
  network.connect();
  network.pump();
  EXPECT_THAT(network.ends[1].received[1], ElementsAre("one", "two", "three"));
}

// Any order of sending, of connections that break wherever they are, and of bytes that come in any pieces.
class RandomNetwork : public ::testing::TestWithParam<int> {};

TEST_P(RandomNetwork, LosesDoublesAndReordersNothing) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  Network network;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t end = below(2);
    switch (below(8)) {
      case 0: {
        const std::size_t size = below(50) == 0 ? below(3 * ResumableSession::max_piece_bytes) : below(40);
        std::string text = std::to_string(step) + " ";
        text.resize(text.size() + size, static_cast<char>('a' + step % 26));
        network.send(end, static_cast<Lane>(below(num_lanes)), text);
        break;
      }
      case 1:
        network.now += milliseconds(below(300));
        break;
      case 2:
        if (below(20) == 0) network.cut();
        break;
      case 3:
        if (!network.ends[0].session.is_connected()) network.connect();
        break;
      case 4:
      case 5:
        network.write(end, 1 + below(below(10) == 0 ? 100'000 : 100));
        break;
      default:
        network.deliver(end, 1 + below(below(10) == 0 ? 100'000 : 100));
    }
  }
  network.connect();
  network.pump();
  network.now += seconds(1);
  network.pump();
  for (const std::size_t end : {0u, 1u}) {
    EXPECT_EQ(network.ends[end].received, network.ends[1 - end].sent);
    EXPECT_EQ(network.ends[end].session.kept_pieces(), 0u);
    EXPECT_EQ(network.ends[end].session.kept_bytes(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNetwork, ::testing::Range(1, 21));

}  // namespace
}  // namespace cadre::channel
