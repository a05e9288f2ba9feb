#include "channel/worker_end.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "channel/codec.h"

namespace cadre::channel {
namespace {

std::atomic<int> waits = 0;

TEST(WorkerEnd, WhoeverWaitsForLongIsToldOnceForEachWait) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const base::FileDescriptor controller(sockets[0]);
  WorkerEnd worker{base::FileDescriptor(sockets[1])};
  worker.when_idle([] { ++waits; });
  Bytes frame;
  encode(Answer{}, frame);
  const auto answer = [&] {
    ASSERT_EQ(::write(controller.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  };
  answer();
  worker.receive_answer();
  EXPECT_EQ(waits, 0) << "the answer was there";
  for (int told = 1; told <= 2; ++told) {
    std::thread late([&] {
      while (waits < told) ::usleep(1000);
      answer();
    });
    worker.receive_answer();
    late.join();
    EXPECT_EQ(waits, told);
  }
}

}  // namespace
}  // namespace cadre::channel
