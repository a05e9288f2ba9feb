// Streams and links over real sockets, encrypted and not.
#include "channel/link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "channel/tls.h"

namespace cadre::channel {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::pair<base::FileDescriptor, base::FileDescriptor> connected_sockets() {
  std::array<int, 2> sockets{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  return {base::FileDescriptor(sockets[0]), base::FileDescriptor(sockets[1])};
}

using Streams = std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>>;

Streams plain_streams() {
  auto [one, other] = connected_sockets();
  return {std::make_unique<SocketStream>(std::move(one)), std::make_unique<SocketStream>(std::move(other))};
}

Streams encrypted_streams() {
  static const Identity identity = tls().make_identity();
  static const auto server = tls().server(identity);
  static const auto client = tls().client(identity.certificate);
  auto [one, other] = connected_sockets();
  return {client->open(std::move(one)), server->open(std::move(other))};
}

std::pair<base::FileDescriptor, base::FileDescriptor> pipe_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

Streams pairs_of_pipes() {
  auto [there, from_one] = pipe_ends();
  auto [back, from_other] = pipe_ends();
  return {std::make_unique<PairStream>(std::move(back), std::move(from_one)),
          std::make_unique<PairStream>(std::move(there), std::move(from_other))};
}

Bytes to_bytes(const std::string& text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// Two ends in one process, with a poller each.
class LinkTest : public ::testing::TestWithParam<Streams (*)()> {
 protected:
  LinkTest() {
    if (GetParam() == pairs_of_pipes) before_ = ::signal(SIGPIPE, SIG_IGN);
  }
  ~LinkTest() override { ::signal(SIGPIPE, before_); }
  struct End {
    Poller poller;
    std::vector<std::string> heard;
    Link link{poller, 7, [this](LaneMessage&& message) {
                const std::string text(reinterpret_cast<const char*>(message.content.data()), message.content.size());
                if (text == "refused") throw ProtocolError("a test refuses it");
                heard.push_back(text);
              }};
  };

  void connect() {
    auto [stream, other_stream] = GetParam()();
    one.link.connect(std::move(stream), {}, Link::TimePoint::clock::now());
    other.link.connect(std::move(other_stream), {}, Link::TimePoint::clock::now());
  }
  bool until(const std::function<bool()>& done) {
    for (const auto end = Link::TimePoint::clock::now() + 30s; Link::TimePoint::clock::now() < end;) {
      for (End* which : {&one, &other}) {
        which->link.flush(Link::TimePoint::clock::now());
        which->poller.wait(0ms);
      }
      if (done()) return true;
    }
    return false;
  }

  End one;
  End other;

 private:
  sighandler_t before_ = SIG_DFL;
};

INSTANTIATE_TEST_SUITE_P(Plain, LinkTest, ::testing::Values(plain_streams));
INSTANTIATE_TEST_SUITE_P(Pipes, LinkTest, ::testing::Values(pairs_of_pipes));
INSTANTIATE_TEST_SUITE_P(Encrypted, LinkTest, ::testing::Values(encrypted_streams));

TEST_P(LinkTest, CarriesMessagesBothWays) {
  connect();
  one.link.send(Lane::control, to_bytes("there"));
  other.link.send(Lane::reports, to_bytes("back"));
  ASSERT_TRUE(until([&] { return !one.heard.empty() && !other.heard.empty(); }));
  EXPECT_THAT(other.heard, ElementsAre("there"));
  EXPECT_THAT(one.heard, ElementsAre("back"));
}

TEST_P(LinkTest, CarriesMoreThanTheSocketHolds) {
  connect();
  const std::string text(std::size_t{9} << 20, 'x');
  one.link.send(Lane::control, to_bytes(text));
  other.link.send(Lane::control, to_bytes(text));
  ASSERT_TRUE(until([&] { return !one.heard.empty() && !other.heard.empty(); }));
  EXPECT_TRUE(one.heard[0] == text && other.heard[0] == text);
}

TEST_P(LinkTest, LosesAndDoublesNothingWhenConnectionsBreak) {
  std::vector<std::string> sent;
  for (int i = 0; i < 300; ++i) {
    sent.push_back(std::to_string(i));
    one.link.send(Lane::control, to_bytes(sent.back()));
    if (i % 10 == 0) connect();
    until([&, looks = 0]() mutable { return ++looks > i % 7; });
    if (i % 10 == 9) (i % 20 == 9 ? one : other).link.disconnect("a test breaks it");
  }
  connect();
  ASSERT_TRUE(until([&] { return other.heard.size() >= sent.size(); }));
  EXPECT_EQ(other.heard, sent);
}

// The messages arrive at once, as the other end did not read meanwhile.
TEST_P(LinkTest, AMessageThatIsRefusedEndsTheConnectionAndCostsNoOther) {
  connect();
  one.link.send(Lane::control, to_bytes("first"));
  ASSERT_TRUE(until([&] { return !other.heard.empty(); }));
  for (const char* text : {"refused", "second", "third"}) one.link.send(Lane::control, to_bytes(text));
  one.link.flush(Link::TimePoint::clock::now());
  ASSERT_TRUE(until([&] { return !other.link.is_connected(); }));
  EXPECT_EQ(other.link.broken()->reason, "a test refuses it");
  connect();
  one.link.send(Lane::control, to_bytes("fourth"));
  ASSERT_TRUE(until([&] { return other.heard.back() == "fourth"; }));
  EXPECT_THAT(other.heard, ElementsAre("first", "second", "third", "fourth"));
}

TEST_P(LinkTest, SeesThatTheOtherEndIsGone) {
  connect();
  one.link.send(Lane::control, to_bytes("x"));
  ASSERT_TRUE(until([&] { return !other.heard.empty(); }));
  EXPECT_EQ(other.link.broken(), std::nullopt);
  one.link.disconnect("it goes");
  ASSERT_TRUE(until([&] { return !other.link.is_connected(); }));
  EXPECT_FALSE(other.link.broken()->was_silent);
  EXPECT_THAT(other.link.broken()->reason, HasSubstr("connection"));
}

TEST_P(LinkTest, GivesASilentConnectionUp) {
  connect();
  one.link.send(Lane::control, to_bytes("x"));
  ASSERT_TRUE(until([&] { return !other.heard.empty(); }));
  const auto later = Link::TimePoint::clock::now() + Link::longest_silence + 1s;
  EXPECT_LE(other.link.next_flush(), later);
  other.link.flush(later);
  EXPECT_FALSE(other.link.is_connected());
  EXPECT_THAT(other.link.broken()->reason, HasSubstr("nothing was heard for 5 seconds"));
}

// A process that was held up, as by a slow disk, has not listened: the other end was not silent.
TEST_P(LinkTest, KeepsAConnectionWhoseOtherEndSpokeWhileThisOneDidNotListen) {
  connect();
  one.link.send(Lane::control, to_bytes("before"));
  ASSERT_TRUE(until([&] { return !other.heard.empty(); }));
  one.link.send(Lane::control, to_bytes("x"));
  one.link.flush(Link::TimePoint::clock::now());
  other.link.flush(Link::TimePoint::clock::now() + Link::longest_silence + 1s);
  EXPECT_TRUE(other.link.is_connected());
  EXPECT_THAT(other.heard, ElementsAre("before", "x"));
}

// Returns true if the descriptor can be read within a while.
bool is_readable(int descriptor, int timeout_ms) {
  ::pollfd watched{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, timeout_ms) > 0;
}

TEST(PairStream, WakesWhenItsOutputHasRoomAndOnlyThen) {
  auto [there, output] = pipe_ends();
  auto [input, back] = pipe_ends();
  PairStream stream(std::move(input), std::move(output));
  EXPECT_FALSE(is_readable(stream.descriptor(), 0));
  const Bytes bytes(std::size_t{1} << 16);
  while (stream.write(bytes) != 0) {
  }
  EXPECT_FALSE(is_readable(stream.descriptor(), 0));
  Bytes space(std::size_t{1} << 16);
  ASSERT_EQ(::read(there.get(), space.data(), space.size()), std::ssize(space));
  EXPECT_TRUE(is_readable(stream.descriptor(), 10'000));
  EXPECT_EQ(stream.write(std::span(bytes).first(1)), 1U);
  EXPECT_FALSE(is_readable(stream.descriptor(), 0));
  back.reset();
  EXPECT_TRUE(is_readable(stream.descriptor(), 10'000));
  EXPECT_THROW(stream.read(space), StreamEnded);
}

TEST(PairStream, AFileIsNone) {
  auto [input, output] = pipe_ends();
  base::FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THROW(PairStream(std::move(file), std::move(output)), StreamEnded);
}

// Another end that the test drives, and a link that is mute when it has heard nothing for five seconds.
class MuteLink : public testing::Test {
 protected:
  MuteLink() {
    auto [one, other] = connected_sockets();
    there = std::move(other);
    partner.connect(begin);
    link.connect(std::make_unique<SocketStream>(std::move(one)), {}, begin);
    partner_says(begin);
    took_something();
  }
  // Sends what the other end has to say at a time, and lets the link read it.
  void partner_says(Link::TimePoint time) {
    const auto said = partner.output(time);
    ASSERT_FALSE(said.empty());
    ASSERT_EQ(::send(there.get(), said.data(), said.size(), 0), std::ssize(said));
    partner.written(said.size());
    ASSERT_TRUE(poller.wait(60s));
  }
  // Returns true if the link has sent something since the last call, which the other end then has.
  bool took_something() {
    std::array<std::byte, 4096> space{};
    const auto count = ::recv(there.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (count <= 0) return false;
    std::vector<LaneMessage> messages;
    partner.receive(std::span(space).first(static_cast<std::size_t>(count)), begin, messages);
    return true;
  }

  const Link::TimePoint begin = Link::Clock::now();
  base::FileDescriptor there;
  Poller poller;
  Link link{poller, 7, [](LaneMessage&&) {}, {.silence = 60s, .mute_after = 10s}};
  ResumableSession partner{7};
};

TEST_F(MuteLink, SaysNothingWhenItHasHeardNothingForAWhile) {
  link.send(Lane::control, to_bytes("x"));
  link.flush(begin + 5s);
  EXPECT_TRUE(took_something());
  link.send(Lane::control, to_bytes("y"));
  link.flush(Link::Clock::now() + 10s);
  EXPECT_FALSE(took_something());
  EXPECT_TRUE(link.is_connected());
}

TEST_F(MuteLink, SpeaksAgainWhenItHearsSomething) {
  link.send(Lane::control, to_bytes("x"));
  link.flush(Link::Clock::now() + 10s);
  ASSERT_FALSE(took_something());
  partner_says(begin + 5s);
  link.flush(Link::Clock::now());
  EXPECT_TRUE(took_something());
}

TEST_F(MuteLink, EndsWhenItHasHeardNothingForLonger) {
  link.flush(Link::Clock::now() + 59s);
  EXPECT_TRUE(link.is_connected());
  link.flush(Link::Clock::now() + 60s);
  EXPECT_FALSE(link.is_connected());
}

TEST(Tls, AWriteToWhoIsGoneRaisesNoSignal) {
  struct sigaction before{};
  ::sigaction(SIGPIPE, nullptr, &before);
  ASSERT_EQ(before.sa_handler, SIG_DFL);
  auto [one, other] = encrypted_streams();
  std::array<std::byte, 100> bytes{};
  std::size_t sent = 0;
  while (sent == 0) {
    sent = one->write(bytes);
    if (sent == 0 && one->read(bytes) == 0) static_cast<void>(other->read(bytes));
  }
  other.reset();
  EXPECT_THROW(for (;;) static_cast<void>(one->write(bytes)), StreamEnded);
}

TEST(Tls, SecretsAreDrawnAndTheirCodesDiffer) {
  const std::string secret = tls().make_secret();
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_NE(secret, tls().make_secret());
  EXPECT_EQ(tls().authenticate("key", "The quick brown fox jumps over the lazy dog"),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
}

}  // namespace
}  // namespace cadre::channel
