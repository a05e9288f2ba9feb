// Functions of a host (cadre/host.h) that datasets call: this program makes them from values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cadre/data.h"
#include "cadre/host.h"
#include "support/message_of.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes functions of {"plus": ...}, which count their calls; of {"object": ...}, whose addend is an object's text.
BatchCall make_call(const Value& value, const CallContext& context) {
  const Config config(value);
  if (config.get<bool>("fails", false)) throw HostError("Traceback: the host says why");
  const std::int64_t plus = config.dict().front().first == "object"
                                ? std::stoll(std::string(get_object(config, "object").text()))
                                : config.get<std::int64_t>("plus");
  if (config.get<bool>("sleeps", false)) {
    return [](const Batch& batch) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return batch;
    };
  }
  return [plus, epoch = static_cast<std::int64_t>(context.epoch),
          calls = std::make_shared<std::int64_t>(0)](const Batch& batch) {
    auto ids = batch.to_vector<std::int64_t>("id");
    for (std::int64_t& id : ids) id += plus;
    const auto rows = ids.size();
    return Batch{{"id", std::move(ids)},
                 {"call", std::vector<std::int64_t>(rows, (*calls)++)},
                 {"epoch", std::vector<std::int64_t>(rows, epoch)},
                 {"process", std::vector<std::int64_t>(rows, ::getpid())}};
  };
}

// The workers are forked from this process's server, so it is set before main().
const bool is_set = [] {
  set_host_functions(&make_call);
  return true;
}();

template <class Function = BatchFunction>
Function function_of(const Value& value) {
  Function function;
  function.name = "adds";
  function.host_function.value = value;
  return function;
}

Dataset in_place(const Dataset& dataset, FunctionPlace place) {
  return dataset.with_options({.num_threads = 2, .function_place = place});
}

std::vector<std::int64_t> column_of(const Dataset& dataset, const std::string& column) {
  std::vector<std::int64_t> values;
  for (const Row& row : dataset.take_all()) values.push_back(row.get<std::int64_t>(column));
  return values;
}

TEST(DatasetOfAHost, CallsItsFunctionsInThreadsAndInProcesses) {
  for (const FunctionPlace place : {FunctionPlace::threads, FunctionPlace::processes}) {
    const Dataset added =
        in_place(range(6), place).map_batches(function_of(Value{{"plus", 10}}), {.batch_size = 2, .concurrency = 1});
    EXPECT_THAT(column_of(added, "id"), ElementsAre(10, 11, 12, 13, 14, 15));
    EXPECT_THAT(column_of(added, "call"), ElementsAre(0, 0, 1, 1, 2, 2));
    for (const std::int64_t process : column_of(added, "process"))
      EXPECT_EQ(process == ::getpid(), place == FunctionPlace::threads);
  }
}

TEST(DatasetOfAHost, TellsItsFunctionsTheEpoch) {
  for (const FunctionPlace place : {FunctionPlace::threads, FunctionPlace::processes}) {
    Shard shard = in_place(range(3), place).map_batches(function_of(Value{{"plus", 0}})).shard({});
    shard.set_epoch(4);
    for (const Batch& batch : shard.iter_batches())
      EXPECT_THAT(batch.values<std::int64_t>("epoch"), ElementsAre(4, 4, 4));
  }
}

TEST(DatasetOfAHost, MakesAnObjectInEachWorker) {
  const Dataset added = in_place(range(40), FunctionPlace::processes)
                            .map_batches(function_of<Actor>(Value{{"plus", 0}}), {.batch_size = 1, .concurrency = 2});
  std::set<std::pair<std::int64_t, std::int64_t>> calls;
  for (const Row& row : added.take_all())
    calls.emplace(row.get<std::int64_t>("process"), row.get<std::int64_t>("call"));
  EXPECT_EQ(calls.size(), 40U);
}

TEST(DatasetOfAHost, HasFunctionsWithObjects) {
  const ObjectRef seven = put(std::string("7"));
  const Dataset added = in_place(range(2), FunctionPlace::processes)
                            .map_batches(function_of(Value{{"object", to_reference(seven)}}), {.concurrency = 1});
  EXPECT_THAT(column_of(added, "id"), ElementsAre(7, 8));
}

TEST(DatasetOfAHost, SaysWhatItsFunctionSays) {
  for (const FunctionPlace place : {FunctionPlace::threads, FunctionPlace::processes}) {
    const Dataset failing = in_place(range(2), place).map_batches(function_of(Value{{"plus", 1}, {"fails", true}}));
    EXPECT_THAT(message_of<DatasetError>([&] { failing.take_all(); }),
                AllOf(HasSubstr("map_batches(adds): its constructor has thrown"), HasSubstr("the host says why")));
  }
}

TEST(DatasetOfAHost, IsStoredWithItsFunctionsAndNotWithoutThem) {
  const Dataset added = in_place(range(2), FunctionPlace::threads).map_batches(function_of(Value{{"plus", 5}}));
  EXPECT_THAT(column_of(Dataset(Value(added)), "id"), ElementsAre(5, 6));
  EXPECT_THAT(to_json(Value(added)), HasSubstr(R"("host_function")"));
  EXPECT_THAT(to_json(Value(range(2).limit(1))), ::testing::Not(HasSubstr("host_function")));
}

TEST(DatasetOfAHost, KnowsThatAFunctionOfRowsKeepsTheirNumber) {
  const Dataset mapped =
      range(5).map(function_of<RowFunction>(Value{{"plus", 1}, {"fails", true}}));  // it is not called to count them
  EXPECT_EQ(mapped.count(), 5);
}

std::atomic<int> checks = 0;

struct Signal {};

TEST(DatasetOfAHost, IsEndedByWhatItsHostChecks) {
  checks = 0;
  set_interrupt_check([] {
    if (++checks == 3) throw Signal{};
  });
  const Dataset slow = in_place(range(1'000'000), FunctionPlace::threads)
                           .map_batches(function_of(Value{{"plus", 0}, {"sleeps", true}}), {.batch_size = 1});
  EXPECT_THROW(static_cast<void>(slow.materialize()), Signal);
  checks = 0;
  EXPECT_THROW(
      {
        for (const Batch& batch : slow.iter_batches({.batch_size = 1'000'000})) static_cast<void>(batch);
      },
      Signal);
  set_interrupt_check(nullptr);
  EXPECT_EQ(range(5).count(), 5);
}

TEST(DatasetOfAHost, IsRefusedWhereThereIsNone) {
  set_host_functions(nullptr);
  EXPECT_THAT(message_of<InvalidArgument>([&] { range(2).map_batches(function_of(Value{{"plus", 1}})); }),
              AllOf(HasSubstr("\"adds\""), HasSubstr("one of a host")));
  set_host_functions(&make_call);
}

}  // namespace
}  // namespace cadre::data
