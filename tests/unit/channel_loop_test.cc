#include "base/file_descriptor.h"
#include "channel/loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cadre/error.h"
#include "channel/worker_end.h"

namespace cadre::channel {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::HasSubstr;

struct Pair {
  Pair() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ours = base::FileDescriptor(sockets[0]);
    theirs = base::FileDescriptor(sockets[1]);
  }
  base::FileDescriptor ours;
  base::FileDescriptor theirs;
};

class ChannelLoop : public ::testing::Test {
 protected:
  Loop::Handlers handlers() {
    return {[this](Message&& message) { messages.push_back(std::move(message)); },
            [this](const std::string& reason) { closed.push_back(reason); }};
  }
  void write(const std::string& bytes) {
    EXPECT_EQ(::write(pair.theirs.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  Pair pair;
  std::vector<Message> messages;
  std::vector<std::string> closed;
  Loop loop;
};

TEST_F(ChannelLoop, CarriesAWorkersWholeLife) {
  const ConnectionId connection = loop.add_connection(std::move(pair.ours), handlers());
  loop.send(connection, Assignment{"entry", list(1, 2)});
  Assignment assigned;
  Answer answered;
  std::thread worker([&] {
    WorkerEnd controller(std::move(pair.theirs));
    assigned = controller.receive_assignment();
    answered = controller.report({1, Metrics{{"loss", 0.5}}, "staged"});
    controller.send(Finished{});
  });
  while (messages.empty()) loop.turn(60s);
  EXPECT_EQ(std::get<Report>(messages.at(0)).checkpoint, "staged");
  loop.send(connection, Answer{Verdict::go_on, "committed"});
  while (closed.empty()) loop.turn(60s);
  worker.join();
  EXPECT_EQ(assigned.payload, list(1, 2));
  EXPECT_EQ(answered.checkpoint, "committed");
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Finished>(messages[1]));
  EXPECT_EQ(closed, std::vector<std::string>{""});
}

TEST_F(ChannelLoop, AMessageLargerThanTheSocketIsSentDuringTurns) {
  const ConnectionId connection = loop.add_connection(std::move(pair.ours), handlers());
  const std::string text(std::size_t{8} << 20, 'x');
  loop.send(connection, Assignment{"entry", text});
  loop.send(connection, Answer{Verdict::stop, "behind it"});
  Value received;
  Answer answer;
  std::thread worker([&] {
    WorkerEnd controller(std::move(pair.theirs));
    received = controller.receive_assignment().payload;
    answer = controller.report({});
  });
  while (closed.empty()) loop.turn(60s);
  worker.join();
  EXPECT_EQ(received, Value(text));
  EXPECT_EQ(answer.checkpoint, "behind it");
}

TEST_F(ChannelLoop, ATurnTakesAllThatIsReady) {
  std::vector<Pair> pairs(10);
  std::vector<WorkerEnd> workers;
  for (Pair& each : pairs) {
    loop.add_connection(std::move(each.ours), handlers());
    workers.emplace_back(std::move(each.theirs));
    workers.back().send(Failed{"each"});
  }
  loop.turn({});
  EXPECT_EQ(messages.size(), 10U);
}

TEST_F(ChannelLoop, ATurnWithNothingEndsAfterItsTimeoutAndNotBefore) {
  loop.add_connection(std::move(pair.ours), handlers());
  for (const auto timeout : {0ms, 1ms, 20ms}) {
    const auto before = std::chrono::steady_clock::now();
    loop.turn(timeout);
    EXPECT_GE(std::chrono::steady_clock::now() - before, timeout);
  }
  EXPECT_TRUE(messages.empty());
}

TEST_F(ChannelLoop, APartOfAMessageEndsNoTurn) {
  loop.add_connection(std::move(pair.ours), handlers());
  write("CDR1");
  loop.turn(10ms);
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(closed.empty());
}

TEST_F(ChannelLoop, WhatIsNoMessageClosesTheConnectionWithTheReason) {
  loop.add_connection(std::move(pair.ours), handlers());
  write("hello, controller");
  loop.turn(60s);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_THAT(closed[0], HasSubstr("does not start with the mark of one"));
  char byte = 0;
  EXPECT_EQ(::read(pair.theirs.get(), &byte, 1), 0);
}

TEST_F(ChannelLoop, DrainTakesWhatAWorkerSentBeforeItsEnd) {
  const ConnectionId connection = loop.add_connection(std::move(pair.ours), handlers());
  WorkerEnd(std::move(pair.theirs)).send(Failed{"last words"});
  loop.drain(connection);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(std::get<Failed>(messages[0]).message, "last words");
  EXPECT_EQ(closed.size(), 1U);
}

TEST_F(ChannelLoop, AConnectionMayBeClosedInItsOwnCallback) {
  ConnectionId connection = 0;
  connection =
      loop.add_connection(std::move(pair.ours), {[&](Message&&) {
                                                   messages.emplace_back(Finished{});
                                                   loop.close(connection);
                                                 },
                                                 [&](const std::string& reason) { closed.push_back(reason); }});
  WorkerEnd worker(std::move(pair.theirs));
  worker.send(Failed{"one"});
  worker.send(Failed{"two"});
  loop.turn(60s);
  EXPECT_EQ(messages.size(), 1U);
  EXPECT_TRUE(closed.empty());
  EXPECT_THROW(worker.report({}), ControllerGone);
}

TEST_F(ChannelLoop, AConnectionMayBeClosedInItsOwnCallbackWhileItIsDrained) {
  ConnectionId connection = 0;
  const auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> callback = owned;
  bool was_destroyed = true;
  connection = loop.add_connection(std::move(pair.ours), {[&, owned = owned](Message&&) {
                                                            loop.close(connection);
                                                            was_destroyed = callback.use_count() < 2;
                                                          },
                                                          [](const std::string&) {}});
  {
    WorkerEnd controller(std::move(pair.theirs));
    controller.send(Finished{});
  }
  loop.drain(connection);
  EXPECT_FALSE(was_destroyed) << "the callback was destroyed while it ran";
  EXPECT_EQ(callback.use_count(), 1) << "the callback is still there after the drain";
}

TEST_F(ChannelLoop, SendingToAWorkerThatIsGoneDoesNothing) {
  const ConnectionId connection = loop.add_connection(std::move(pair.ours), handlers());
  pair.theirs.reset();
  loop.send(connection, Answer{});
  loop.turn(60s);
  EXPECT_EQ(closed.size(), 1U);
  loop.send(connection, Answer{});
  loop.close(connection);
  loop.send(connection, Answer{});
}

TEST_F(ChannelLoop, AnExceptionOfACallbackComesOutOfTheTurnAfterTheOthersRan) {
  Pair other;
  loop.add_connection(std::move(pair.ours),
                      {[](Message&&) { throw std::runtime_error("full disk"); }, [](const std::string&) {}});
  loop.add_connection(std::move(other.ours), handlers());
  WorkerEnd first(std::move(pair.theirs));
  WorkerEnd second(std::move(other.theirs));
  first.send(Failed{"one"});
  second.send(Failed{"two"});
  EXPECT_THROW(loop.turn(60s), std::runtime_error);
  EXPECT_EQ(messages.size(), 1U);
  EXPECT_NO_THROW(loop.turn(0ms));
}

TEST_F(ChannelLoop, AWatchedDescriptorWakesTheTurn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const base::FileDescriptor output(ends[0]);
  const base::FileDescriptor input(ends[1]);
  std::string read;
  loop.watch(output.get(), [&] {
    for (char byte = 0; ::read(output.get(), &byte, 1) == 1;) read.push_back(byte);
  });
  for (const char* text : {"one", "two"}) {
    ASSERT_EQ(::write(input.get(), text, 3), 3);
    loop.turn(60s);
  }
  EXPECT_EQ(read, "onetwo");
  loop.unwatch(output.get());
  ASSERT_EQ(::write(input.get(), "end", 3), 3);
  loop.turn(1ms);
  EXPECT_EQ(read, "onetwo");
}

TEST_F(ChannelLoop, ASecondLoopInTheThreadIsRefused) { EXPECT_THROW(Loop(), EngineError); }

TEST_F(ChannelLoop, TheProgramsSignalHandlersStay) {
  struct sigaction handler;
  ::sigaction(SIGPIPE, nullptr, &handler);
  EXPECT_EQ(handler.sa_handler, SIG_DFL);
}

TEST(ChannelWorkerEnd, TheControllersEndIsNoticedInEveryCall) {
  Pair pair;
  pair.ours.reset();
  WorkerEnd worker(std::move(pair.theirs));
  EXPECT_THROW(worker.receive_assignment(), ControllerGone);
  EXPECT_THROW(worker.report({}), ControllerGone);
  EXPECT_THROW(worker.send(Finished{}), ControllerGone);
  EXPECT_THROW(worker.send(Failed{"why"}), ControllerGone);
}

TEST(ChannelWorkerEnd, AReportOverALimitIsNotSent) {
  Pair pair;
  WorkerEnd worker(std::move(pair.theirs));
  EXPECT_THROW(worker.report({1, Metrics{{"a", std::string(max_message_bytes, 'x')}}, ""}), InvalidArgument);
  char byte = 0;
  EXPECT_EQ(::recv(pair.ours.get(), &byte, 1, MSG_DONTWAIT), -1);
}

}  // namespace
}  // namespace cadre::channel
