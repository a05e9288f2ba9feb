// Requests to the fork server, in whose place is a thread.
#include "engine/local/fork_server.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/file_descriptor.h"
#include "engine/local/fork_protocol.h"

namespace cadre::engine::local {
namespace {

std::atomic<int> handled_signals = 0;

// Handles SIGUSR1 as Python does it: a call of the system that waits is not continued.
void handle_signal() {
  struct sigaction action{};
  action.sa_handler = [](int) { ++handled_signals; };
  ::sigaction(SIGUSR1, &action, nullptr);
}

TEST(ForkServerConnection, AKillArrivesThoughSignalsInterruptItsSenderWhileTheServerIsBusy) {
  constexpr std::uint64_t worker = 7;
  constexpr int most_signals = 1000;
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  ForkServerConnection connection{base::FileDescriptor(sockets[0])};
  const base::FileDescriptor server(sockets[1]);
  const Request other{.kind = Request::Kind::connect};
  while (::send(connection.fd(), &other, offsetof(Request, directory), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  handle_signal();
  const pthread_t sender = ::pthread_self();
  std::atomic<bool> has_sent = false;
  bool is_killed = false;
  std::thread busy_server([&] {
    while (!has_sent && handled_signals < most_signals) {
      ::pthread_kill(sender, SIGUSR1);
      std::this_thread::yield();
    }
    Request request;
    while (::recv(server.get(), &request, sizeof request, 0) > 0)
      is_killed = is_killed || (request.kind == Request::Kind::kill && request.worker == worker);
  });
  connection.kill(worker);
  has_sent = true;
  ::shutdown(connection.fd(), SHUT_WR);
  busy_server.join();
  EXPECT_TRUE(is_killed);
}

// Threads of the program that have set no name of their own. A library's may still do so, for which there are five
// seconds, and not for each.
TEST(OtherThreads, AreKnownSoonThoughTheyHaveNoNames) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;
  const auto stay = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ends; });
  };
  std::thread one(stay);
  std::thread another(stay);
  const auto begin = std::chrono::steady_clock::now();
  const bool is_alone = other_threads().empty();
  const auto time = std::chrono::steady_clock::now() - begin;
  {
    const std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  one.join();
  another.join();
  EXPECT_FALSE(is_alone);
  EXPECT_LT(time, std::chrono::seconds(8));
}

}  // namespace
}  // namespace cadre::engine::local
