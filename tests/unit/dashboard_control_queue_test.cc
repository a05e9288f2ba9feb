#include "dashboard/control_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cadre/error.h"

namespace cadre::dashboard {
namespace {

using namespace std::chrono_literals;

// Answers a request as its location says, "held" only after release().
class FakeControls : public Controls {
 public:
  std::atomic<bool> is_released = false;
  std::atomic<int> withdrawn = 0;

  std::unique_ptr<Asked> ask(const std::string& location, const Dict&) override {
    if (location == "ended") throw NotFound("nothing runs");
    if (location == "full") throw StorageError("no space");
    return std::make_unique<FakeAsked>(*this, location);
  }

 private:
  class FakeAsked : public Asked {
   public:
    FakeAsked(FakeControls& controls, std::string location) : controls_(controls), location_(std::move(location)) {}
    ~FakeAsked() override { controls_.withdrawn += is_answered_ ? 0 : 1; }
    std::optional<std::string> answer() override {
      if (location_ == "held" && !controls_.is_released) return std::nullopt;
      is_answered_ = true;
      if (location_ == "refuses") throw InvalidArgument("no");
      if (location_ == "breaks") throw std::runtime_error("broken");
      return "done";
    }

   private:
    FakeControls& controls_;
    std::string location_;
    bool is_answered_ = false;
  };
};

class ControlQueueTest : public ::testing::Test {
 protected:
  ControlQueueTest() : thread_([this] { queue_.run(); }) {}
  ~ControlQueueTest() override {
    queue_.stop();
    thread_.join();
  }
  ControlQueue::Outcome outcome(const std::string& location) { return queue_.add(location, {})->get(); }

  FakeControls controls_;
  std::atomic<int> answered_ = 0;
  ControlQueue queue_{controls_, [this] { ++answered_; }};
  std::thread thread_;
};

TEST_F(ControlQueueTest, SaysHowRequestsWent) {
  using Result = ControlQueue::Result;
  const auto is = [](const ControlQueue::Outcome& outcome, Result result, const char* text) {
    EXPECT_EQ(outcome.result, result) << text;
    EXPECT_EQ(outcome.text, text);
  };
  is(outcome("good"), Result::done, "done");
  is(outcome("refuses"), Result::refused, "no");
  is(outcome("ended"), Result::refused, "nothing runs");
  is(outcome("full"), Result::unavailable, "no space");
  is(outcome("breaks"), Result::unavailable, "broken");
}

TEST_F(ControlQueueTest, LetsNoRequestWaitForAnother) {
  auto held = queue_.add("held", {});
  EXPECT_EQ(outcome("good").text, "done");
  EXPECT_EQ(held->wait_for(0s), std::future_status::timeout);
  controls_.is_released = true;
  EXPECT_EQ(held->get().text, "done");
}

TEST_F(ControlQueueTest, TakesOnlySoManyThatWait) {
  std::vector<std::future<ControlQueue::Outcome>> held;
  for (std::size_t i = 0; i < ControlQueue::kMost; ++i) held.push_back(*queue_.add("held", {}));
  EXPECT_FALSE(queue_.add("good", {}));
  controls_.is_released = true;
  for (auto& one : held) EXPECT_EQ(one.get().text, "done");
  while (true) {  // once the last one is counted
    if (auto next = queue_.add("good", {})) {
      EXPECT_EQ(next->get().text, "done");
      break;
    }
    std::this_thread::yield();
  }
  EXPECT_GT(answered_, 0);
}

TEST(ControlQueue, WithdrawsWhatWaitsWhenItStops) {
  FakeControls controls;
  ControlQueue queue(controls, [] {});
  std::thread thread([&] { queue.run(); });
  auto held = queue.add("held", {});
  queue.add("good", {})->wait();
  queue.stop();
  thread.join();
  EXPECT_EQ(controls.withdrawn, 1);
  EXPECT_EQ(held->get().result, ControlQueue::Result::unavailable);
}

}  // namespace
}  // namespace cadre::dashboard
