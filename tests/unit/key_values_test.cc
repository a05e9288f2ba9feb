#include "worker/key_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace cadre::worker {
namespace {

using channel::StoreReply;
using channel::StoreRequest;
using Operation = StoreRequest::Operation;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr auto kNow = KeyValues::TimePoint(std::chrono::seconds(100));

// Sends a request of asker 1, which gets its reply at once.
StoreReply ask(KeyValues& values, const StoreRequest& request) {
  const auto replies = values.handle(1, request, kNow);
  EXPECT_EQ(replies.size(), 1u);
  return replies.empty() ? StoreReply{.error = "none"} : replies.front().reply;
}

TEST(KeyValues, WhatIsSetIsFoundAndCanBeErased) {
  KeyValues values;
  const std::string bytes("a\0b\xff", 4);
  ask(values, {.operation = Operation::set, .keys = {"key"}, .value = bytes});
  EXPECT_EQ(ask(values, {.operation = Operation::get, .keys = {"key"}}).value, bytes);
  EXPECT_EQ(ask(values, {.operation = Operation::contains, .keys = {"key"}}).number, 1);
  EXPECT_EQ(ask(values, {.operation = Operation::contains, .keys = {"key", "other"}}).number, 0);
  EXPECT_EQ(ask(values, {.operation = Operation::size}).number, 1);
  EXPECT_EQ(ask(values, {.operation = Operation::erase, .keys = {"key"}}).number, 1);
  EXPECT_EQ(ask(values, {.operation = Operation::erase, .keys = {"key"}}).number, 0);
  EXPECT_EQ(ask(values, {.operation = Operation::size}).number, 0);
}

TEST(KeyValues, NumbersAreAddedAndAnythingElseIsNot) {
  KeyValues values;
  EXPECT_EQ(ask(values, {.operation = Operation::add, .keys = {"n"}, .amount = 3}).number, 3);
  EXPECT_EQ(ask(values, {.operation = Operation::add, .keys = {"n"}, .amount = -5}).number, -2);
  EXPECT_EQ(ask(values, {.operation = Operation::get, .keys = {"n"}}).value, "-2");
  ask(values, {.operation = Operation::set, .keys = {"text"}, .value = "2x"});
  EXPECT_THAT(ask(values, {.operation = Operation::add, .keys = {"text"}, .amount = 1}).error, HasSubstr("\"text\""));
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  ask(values, {.operation = Operation::set, .keys = {"n"}, .value = std::to_string(largest)});
  EXPECT_THAT(ask(values, {.operation = Operation::add, .keys = {"n"}, .amount = 1}).error, HasSubstr("64 bits"));
  EXPECT_EQ(ask(values, {.operation = Operation::get, .keys = {"n"}}).value, std::to_string(largest));
}

TEST(KeyValues, CompareAndSetSetsWhereTheValueIsTheExpectedOne) {
  KeyValues values;
  const auto exchange = [&](const char* expected, const char* value) {
    return ask(values, {.operation = Operation::compare_and_set, .keys = {"key"}, .value = value, .expected = expected})
        .value;
  };
  EXPECT_EQ(exchange("something", "1"), "something") << "it is not there";
  EXPECT_EQ(exchange("", "1"), "1");
  EXPECT_EQ(exchange("2", "3"), "1");
  EXPECT_EQ(exchange("1", "3"), "3");
}

TEST(KeyValues, WhoeverWaitsIsAnsweredWithTheLastKeyAndOnce) {
  KeyValues values;
  EXPECT_TRUE(values.handle(2, {.operation = Operation::wait, .keys = {"a", "b"}, .timeout_ms = 1000}, kNow).empty());
  EXPECT_TRUE(values.handle(3, {.operation = Operation::get, .keys = {"b"}, .timeout_ms = 1000}, kNow).empty());
  EXPECT_EQ(values.handle(1, {.operation = Operation::set, .keys = {"a"}, .value = "1"}, kNow).size(), 1u);
  const auto replies = values.handle(1, {.operation = Operation::add, .keys = {"b"}, .amount = 7}, kNow);
  std::map<std::uint64_t, std::string> values_by_worker;
  for (const KeyValues::Reply& reply : replies) values_by_worker[reply.caller.worker] = reply.reply.value;
  EXPECT_THAT(values_by_worker, ElementsAre(Pair(1, ""), Pair(2, ""), Pair(3, "7")));
  EXPECT_EQ(values.handle(1, {.operation = Operation::set, .keys = {"b"}, .value = "1"}, kNow).size(), 1u);
  EXPECT_EQ(values.next_deadline(), std::nullopt);
}

TEST(KeyValues, AKeyThatIsErasedMeanwhileIsMissingAgain) {
  KeyValues values;
  ask(values, {.operation = Operation::set, .keys = {"a"}, .value = "1"});
  EXPECT_TRUE(values.handle(2, {.operation = Operation::wait, .keys = {"a", "b"}, .timeout_ms = 1000}, kNow).empty());
  ask(values, {.operation = Operation::erase, .keys = {"a"}});
  EXPECT_EQ(values.handle(1, {.operation = Operation::set, .keys = {"b"}}, kNow).size(), 1u) << "a is missing";
  EXPECT_EQ(values.handle(1, {.operation = Operation::set, .keys = {"a"}}, kNow).size(), 2u);
}

// As a group of Gloo or NCCL is formed: each rank sets its address, asks for those of all others, and waits for the
// end.
TEST(KeyValues, ManyRanksMeet) {
  constexpr int kRanks = 256;
  KeyValues values;
  std::vector<int> steps(kRanks);
  std::deque<std::uint64_t> replied;
  const auto key = [](const char* kind, int rank) { return kind + std::to_string(rank); };
  const auto next = [&](int rank) {
    const int step = steps[static_cast<std::size_t>(rank)]++;
    StoreRequest request{.operation = Operation::set, .keys = {key("address", rank)}, .value = key("at ", rank)};
    if (step >= 1 && step < kRanks)
      request = {.operation = Operation::get, .keys = {key("address", (rank + step) % kRanks)}, .timeout_ms = 60000};
    if (step == kRanks) request = {.operation = Operation::set, .keys = {key("done", rank)}};
    if (step == kRanks + 1) {
      request = {.operation = Operation::wait, .timeout_ms = 60000};
      for (int other = 0; other < kRanks; ++other) request.keys.push_back(key("done", other));
    }
    for (const auto& reply : values.handle(static_cast<std::uint64_t>(rank), request, kNow)) {
      EXPECT_EQ(reply.reply.error, "");
      replied.push_back(reply.caller.worker);
    }
  };
  int done = 0;
  for (int rank = 0; rank < kRanks; ++rank) {  // one after the other, as processes come; each goes on as far as it can
    next(rank);
    for (; !replied.empty(); replied.pop_front()) {
      const int other = static_cast<int>(replied.front());
      if (steps[replied.front()] <= kRanks + 1) {
        next(other);
      } else {
        ++done;
      }
    }
  }
  EXPECT_EQ(done, kRanks);
  EXPECT_EQ(values.next_deadline(), std::nullopt);
}

TEST(KeyValues, EachThreadOfAWorkerMayWait) {
  KeyValues values;
  const auto get = [&](channel::CallNumber call, const char* key) {
    return values.handle(2, {.operation = Operation::get, .keys = {key}, .timeout_ms = 1000, .call = call}, kNow);
  };
  EXPECT_TRUE(get(1, "a").empty());
  EXPECT_TRUE(get(2, "b").empty());
  for (const auto& [key, call] : {std::pair{"b", 2u}, {"a", 1u}}) {
    const auto replies = values.handle(1, {.operation = Operation::set, .keys = {key}, .value = key}, kNow);
    ASSERT_EQ(replies.size(), 2u);
    EXPECT_EQ(replies[1].caller, (channel::Caller{2, call}));
    EXPECT_EQ(replies[1].reply.value, key);
  }
}

TEST(KeyValues, PatienceEndsWithAnErrorThatNamesTheKeysThatAreMissing) {
  KeyValues values;
  ask(values, {.operation = Operation::set, .keys = {"here"}, .value = "1"});
  values.handle(2, {.operation = Operation::wait, .keys = {"here", "gone", "lost"}, .timeout_ms = 500}, kNow);
  EXPECT_EQ(values.next_deadline(), kNow + std::chrono::milliseconds(500));
  EXPECT_TRUE(values.expire(kNow + std::chrono::milliseconds(499)).empty());
  const auto replies = values.expire(kNow + std::chrono::milliseconds(500));
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].caller.worker, 2u);
  EXPECT_THAT(replies[0].reply.error,
              AllOf(HasSubstr("\"gone\", \"lost\""), HasSubstr("0.5 s"), Not(HasSubstr("here"))));
  EXPECT_EQ(values.next_deadline(), std::nullopt);
}

TEST(KeyValues, AnotherGroupFindsNothing) {
  KeyValues values;
  ask(values, {.operation = Operation::set, .keys = {"key"}, .value = "1"});
  values.handle(2, {.operation = Operation::get, .keys = {"other"}, .timeout_ms = 500}, kNow);
  values.clear();
  EXPECT_EQ(ask(values, {.operation = Operation::size}).number, 0);
  EXPECT_EQ(values.next_deadline(), std::nullopt);
}

TEST(KeyValues, ARequestWithoutItsKeyIsAnError) {
  KeyValues values;
  EXPECT_THAT(ask(values, {.operation = Operation::get}).error, HasSubstr("one key"));
  EXPECT_THAT(ask(values, {.operation = Operation::set, .keys = {"a", "b"}}).error, HasSubstr("one key"));
}

}  // namespace
}  // namespace cadre::worker
