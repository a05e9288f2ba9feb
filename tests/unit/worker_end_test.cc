#include "channel/worker_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "channel/codec.h"
#include "support/message_of.h"

namespace cadre::channel {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

std::atomic<int> waits = 0;

// A worker's end, and the controller's end of its connection.
class WorkerEndTest : public ::testing::Test {
 protected:
  WorkerEndTest() : worker_(connect()) {}

  template <class Sent>
  void send(const Sent& message) {
    Bytes frame;
    encode(message, frame);
    ASSERT_EQ(::write(controller_.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  }
  // Waits for the worker's next message.
  Message next() {
    for (;;) {
      if (const auto body = in_.next()) return decode_message(*body);
      const std::span<std::byte> space = in_.space();
      const ssize_t got = ::read(controller_.get(), space.data(), space.size());
      if (got <= 0) throw std::runtime_error("the worker is gone");
      in_.received(static_cast<std::size_t>(got));
    }
  }

  base::FileDescriptor controller_;
  FrameReader in_;
  WorkerEnd worker_;

 private:
  base::FileDescriptor connect() {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) throw std::runtime_error("no socket pair");
    controller_ = base::FileDescriptor(sockets[0]);
    return base::FileDescriptor(sockets[1]);
  }
};

TEST_F(WorkerEndTest, WhoeverWaitsForLongIsToldOnceForEachWait) {
  worker_.when_idle([] { ++waits; });
  send(Answer{});
  worker_.receive_answer();
  EXPECT_EQ(waits, 0) << "the answer was there";
  for (int told = 1; told <= 2; ++told) {
    std::thread late([&] {
      while (waits < told) ::usleep(1000);
      send(Answer{});
    });
    worker_.receive_answer();
    late.join();
    EXPECT_EQ(waits, told);
  }
}

TEST_F(WorkerEndTest, AReportDoesNotWaitForTheReplyToAnotherThread) {
  auto asking = std::async(std::launch::async, [&] { return worker_.call(Request{"how long?"}); });
  const auto request = std::get<Request>(next());
  for (int i = 0; i < 3; ++i) {
    send(Answer{Verdict::go_on, std::to_string(i)});
    EXPECT_EQ(worker_.report({.step = i}).checkpoint, std::to_string(i));
    next();
  }
  EXPECT_EQ(asking.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  send(Reply{.content = "long", .call = request.call});
  EXPECT_EQ(asking.get().content, Value("long"));
}

TEST_F(WorkerEndTest, EachThreadGetsTheReplyToItsOwnCall) {
  constexpr std::size_t threads = 8;
  constexpr std::size_t calls = 200;
  std::vector<std::future<int>> wrong;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    wrong.push_back(std::async(std::launch::async, [&, thread] {
      int count = 0;
      for (std::size_t i = 0; i < calls; ++i) {
        const std::string key = std::to_string(thread) + "/" + std::to_string(i);
        count += worker_.call(StoreRequest{.keys = {key}}).value == key ? 0 : 1;
      }
      return count;
    }));
  }
  std::vector<StoreReply> held;  // one of each thread; replies are sent in another order than their requests came
  for (std::size_t i = 0; i < threads * calls; ++i) {
    const auto request = std::get<StoreRequest>(next());
    held.insert(held.begin(), {.value = request.keys.at(0), .call = request.call});
    if (held.size() < threads) continue;
    for (const StoreReply& reply : held) send(reply);
    held.clear();
  }
  for (auto& count : wrong) EXPECT_EQ(count.get(), 0);
}

TEST_F(WorkerEndTest, AllThreadsThatWaitNoticeTheEndOfTheController) {
  std::vector<std::future<bool>> noticed;
  for (int thread = 0; thread < 3; ++thread) {
    noticed.push_back(std::async(std::launch::async, [&] {
      try {
        worker_.call(Request{});
        return false;
      } catch (const ControllerGone&) {
        return true;
      }
    }));
  }
  for (int thread = 0; thread < 3; ++thread) next();
  controller_ = {};
  for (auto& one : noticed) EXPECT_TRUE(one.get());
  EXPECT_THROW(worker_.report({}), ControllerGone);
}

TEST_F(WorkerEndTest, TheWrongKindOfMessageIsRefused) {
  send(Answer{});
  EXPECT_THAT(message_of<ProtocolError>([&] { worker_.receive_assignment(); }), HasSubstr("no assignment"));
  send(Assignment{"entry", 1});
  EXPECT_THAT(message_of<ProtocolError>([&] { worker_.receive_answer(); }), HasSubstr("another kind"));
}

}  // namespace
}  // namespace cadre::channel
