#include "worker/key_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cadre::worker {
namespace {

using channel::StoreReply;
using channel::StoreRequest;
using Operation = StoreRequest::Operation;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0].caller.worker, 1u);
  EXPECT_EQ(replies[1].caller.worker, 2u);
  EXPECT_EQ(replies[2].caller.worker, 3u);
  EXPECT_EQ(replies[2].reply.value, "7");
  EXPECT_EQ(values.handle(1, {.operation = Operation::set, .keys = {"b"}, .value = "1"}, kNow).size(), 1u);
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
