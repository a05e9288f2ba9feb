#include "engine/cluster/ray_actors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <chrono>
#include <fstream>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The provider, with a shell script in the place of Python: what a launcher says.
class RayActorsTest : public ::testing::Test {
 protected:
  // Returns a request whose launcher is this script. `read_line` waits for the provider's next line, and keeps it.
  NodeRequest request(std::uint64_t id, const std::string& script, std::int64_t nodes = 1) {
    const std::filesystem::path file = directory_.path() / "python";
    std::ofstream(file) << "#!/bin/sh\nread_line() { read -r line && echo \"$line\" >>" << heard().string() << "; }\n"
                        << "say() { echo \"$1\"; }\n"
                        << script << '\n';
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return {.id = id, .nodes = nodes, .options = {{"python", file.string()}}};
  }

  std::filesystem::path heard() const { return directory_.path() / "heard"; }

  // Returns the next event of this kind.
  template <class Event>
  Event next() {
    return next<Event>(provider_);
  }
  template <class Event>
  Event next(RayActors& provider) {
    for (const auto deadline = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < deadline;) {
      for (ProviderEvent& event : provider.take_events()) events_.push_back(std::move(event));
      while (!events_.empty()) {
        const ProviderEvent event = std::move(events_.front());
        events_.erase(events_.begin());
        if (const auto* const found = std::get_if<Event>(&event)) return *found;
      }
      wait(provider);
    }
    ADD_FAILURE() << "no such event";
    return {};
  }

  // Waits as an engine does.
  static void wait(const RayActors& provider) {
    std::vector<::pollfd> watched;
    for (const int fd : provider.fds()) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    std::chrono::milliseconds left{1000};
    if (const auto next = provider.next_look())
      left = std::chrono::ceil<std::chrono::milliseconds>(*next - std::chrono::steady_clock::now());
    ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1000)));
  }

  test_support::TemporaryDirectory directory_;
  RayActors provider_{{{"PATH", "/usr/bin:/bin"}, {"RAY_ADDRESS", "a:1"}}};
  std::vector<ProviderEvent> events_ = {};
};

constexpr const char* kServes = R"(
  say '{"event": "ready"}'
  read_line
  say '{"event": "queued", "request": 1, "reason": "full"}'
  say '{"event": "started", "request": 1, "ordinal": 0}'
  read_line
  say '{"event": "ended", "request": 1, "ordinal": 0, "reason": "given back", "certain": true}'
  read_line)";

TEST_F(RayActorsTest, ANodeIsAskedForAndGivenBack) {
  provider_.request(request(1, kServes), {.command = {"/agent"}, .variables = {{"TOKEN", "secret"}}});
  EXPECT_EQ(next<Queued>().reason, "full");
  EXPECT_FALSE(provider_.is_giving_back());
  provider_.release(1);
  provider_.release(1, 0);  // again
  EXPECT_TRUE(provider_.is_giving_back());
  EXPECT_EQ(next<AgentEnded>().reason, "given back");
  EXPECT_FALSE(provider_.is_giving_back());
  const std::string lines = base::read_file(heard());
  EXPECT_THAT(lines, HasSubstr(R"("command": ["/agent"])"));
  EXPECT_THAT(lines, HasSubstr(R"({"order": "release", "request": 1, "ordinal": 0})"));
  EXPECT_THAT(lines, Not(HasSubstr("RAY_ADDRESS")));
}

TEST_F(RayActorsTest, OneLauncherServesAllRequests) {
  provider_.request(request(1, kServes), {.mark = "first mark"});
  provider_.request(request(2, kServes), {.mark = "second mark"});
  const std::vector<NodeProcess> processes = provider_.processes();
  ASSERT_EQ(processes.size(), 2);
  EXPECT_EQ(processes[0].pid, processes[1].pid);
  EXPECT_EQ(processes[0].mark, "first mark");
  EXPECT_EQ(processes[1].mark, "first mark");
}

TEST_F(RayActorsTest, WhatCannotBeIsRefusedWithoutALauncher) {
  provider_.request({.id = 1, .options = {{"partition", "a100"}}}, {});
  EXPECT_THAT(next<Refused>().reason, HasSubstr("there is no option \"partition\""));
  provider_.request({.id = 2}, {.over_stdio = true});
  EXPECT_EQ(next<Refused>().reason, "an actor of Ray has no input and output here");
  provider_.request({.id = 3, .options = {{"python", "/no/python"}}}, {});
  EXPECT_THAT(next<Refused>().reason, HasSubstr("cannot start /no/python: No such file or directory"));
  EXPECT_THAT(provider_.fds(), IsEmpty());
}

TEST_F(RayActorsTest, ALauncherThatCannotConnectSaysWhy) {
  provider_.request(request(1, R"(say '{"event": "failed", "reason": "there is no Ray cluster"}')"), {});
  EXPECT_EQ(next<Refused>().reason, "there is no Ray cluster");
}

TEST_F(RayActorsTest, ALauncherThatEndsAtOnceIsToldWithItsLastWords) {
  provider_.request(request(1, "echo first >&2; echo last >&2; exit 3"), {});
  EXPECT_EQ(next<Refused>().reason, "Ray's launcher ended with exit code 3: last");
}

TEST_F(RayActorsTest, WhatIsNoMessageEndsTheLauncher) {
  provider_.request(request(1, R"(say '{"event": "ready"}'; say '{"event": "what"}'; exec sleep 100)"), {});
  EXPECT_EQ(next<Queued>().reason, R"(Ray's launcher says what is none of its messages: {"event": "what"})");
}

TEST_F(RayActorsTest, ALineWithoutAnEndEndsTheLauncher) {
  provider_.request(request(1, "exec head -c 3000000 /dev/zero"), {});
  EXPECT_THAT(next<Refused>().reason, HasSubstr("Ray's launcher says too much at once"));
}

TEST_F(RayActorsTest, WhatWaitsIsAskedForAgainWhenALauncherThatWasConnectedHasEnded) {
  const std::string ends = "if [ ! -e " + heard().string() + R"( ]; then
    say '{"event": "ready"}'
    read_line
    say '{"event": "started", "request": 1, "ordinal": 0}'
    exit 1
  fi)";
  provider_.request(request(1, ends + kServes, 2), {});
  const auto ended = next<AgentEnded>();
  EXPECT_EQ(ended.ordinal, 0);
  EXPECT_FALSE(ended.is_certain);
  EXPECT_EQ(next<Queued>().reason, "Ray's launcher ended with exit code 1");
  EXPECT_EQ(next<Queued>().reason, "full");
  EXPECT_THAT(base::read_file(heard()), HasSubstr(R"("ordinals": [1])"));
}

TEST_F(RayActorsTest, WhatWaitsForAnotherLauncherIsGivenBackAtOnce) {
  provider_.request(request(1, R"(say '{"event": "ready"}'; read_line; exit 1)"), {});
  next<Queued>();
  provider_.release(1);
  EXPECT_EQ(next<AgentEnded>().reason, "given back");
  EXPECT_EQ(provider_.next_look(), std::nullopt);
}

TEST_F(RayActorsTest, NodesOfALauncherThatHasEndedCannotBeClaimed) {
  provider_.claim({{.request = {.id = 4, .nodes = 3}, .ended = {1}}},
                  {{.request = 4, .pid = 1, .mark = "not its own"}});
  const auto first = next<AgentEnded>();
  EXPECT_EQ(first.ordinal, 0);
  EXPECT_EQ(first.reason, "its launcher has ended");
  EXPECT_FALSE(first.is_certain);
  provider_.release(4);
  EXPECT_FALSE(provider_.is_giving_back());
}

TEST_F(RayActorsTest, ALauncherThatNobodyClaimsOrThatDoesNotListenIsEnded) {
  constexpr const char* waits =
      R"(say '{"event": "queued", "request": 1, "reason": "full"}'; while read_line; do :; done)";
  RayActors before{{{"PATH", "/usr/bin:/bin"}}};
  for (const bool is_claimed : {false, true}) {
    before.request(request(1, waits), {.outlives = true, .mark = "the mark"});
    next<Queued>(before);  // so its environment can be read
    std::vector<KeptRequest> claimed;
    if (is_claimed) claimed.push_back({.request = {.id = 1}});
    provider_.claim(claimed, before.processes());
    EXPECT_EQ(next<Refused>(before).reason, "Ray's launcher ended with signal 9");
    if (is_claimed) EXPECT_EQ(next<AgentEnded>().reason, "its launcher has ended");
  }
}

}  // namespace
}  // namespace cadre::engine::cluster
