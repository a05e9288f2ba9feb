// Functions in worker processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "cadre/data.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "worker/root_engine.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const ExecutionOptions kProcesses{.num_threads = 2, .function_place = FunctionPlace::processes};

Dataset processes(const Dataset& dataset) { return dataset.with_options(kProcesses); }

Batch with_process(const Batch& batch) {
  return batch.with("process", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), ::getpid()));
}

std::vector<std::string> devices_for(const Batch& batch) {
  return std::vector<std::string>(static_cast<std::size_t>(batch.num_rows()), std::getenv("CUDA_VISIBLE_DEVICES"));
}
Batch with_devices(const Batch& batch) { return batch.with("devices", devices_for(batch)); }
Batch with_more_devices(const Batch& batch) { return batch.with("more_devices", devices_for(batch)); }

// Adds the number of the call, from 0.
class CallCounter {
 public:
  explicit CallCounter(const Config&) {}
  Batch operator()(const Batch& batch) {
    return batch.with("call", std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()), calls_++));
  }

 private:
  std::int64_t calls_ = 0;
};

// Writes the number of its rows when it is destroyed.
class SaysGoodbye {
 public:
  explicit SaysGoodbye(const Config& config) : folder_(config.get<std::string>("folder")) {}
  ~SaysGoodbye() { std::ofstream(folder_ / std::to_string(::getpid())) << rows_; }
  SaysGoodbye(const SaysGoodbye&) = delete;
  SaysGoodbye& operator=(const SaysGoodbye&) = delete;
  Batch operator()(const Batch& batch) {
    rows_ += batch.num_rows();
    return batch;
  }

 private:
  fs::path folder_;
  std::int64_t rows_ = 0;
};

Batch throws_in_worker(const Batch& batch) {
  if (batch.values<std::int64_t>("id").front() == 50) throw std::invalid_argument("no such image");
  return batch;
}

// Kills its process as often as the config says.
void die(const Config& config) {
  const fs::path folder = config.get<std::string>("folder");
  for (std::int64_t death = 0; death < config.get<std::int64_t>("deaths"); ++death) {
    const fs::path witness = folder / std::to_string(death);
    if (fs::exists(witness)) continue;
    std::ofstream(witness) << "x";
    std::fputs("about to die\n", stderr);
    ::kill(::getpid(), SIGKILL);
  }
}

Batch dies(const Batch& batch, const Config& config) {
  if (batch.values<std::int64_t>("id").front() == 50) die(config);
  return batch;
}

class DiesBeforeItIsMade {
 public:
  explicit DiesBeforeItIsMade(const Config& config) { die(config); }
  Batch operator()(const Batch& batch) const { return batch; }
};

Batch returns_nothing(const Batch& batch) { return batch.slice(0, 0); }

Batch sleeps_for_ever(const Batch& batch) {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  return batch;
}

class Adder {
 public:
  explicit Adder(const Config& config) {
    const Object object = get_object(config, "amounts");
    for (const std::int64_t amount : object.as<std::int64_t>()) sum_ += amount;
  }
  Batch operator()(const Batch& batch) const {
    std::vector<std::int64_t> sums;
    for (const std::int64_t id : batch.values<std::int64_t>("id")) sums.push_back(id + sum_);
    return Batch{{"id", std::move(sums)}};
  }

 private:
  std::int64_t sum_ = 0;
};

class CannotBeMade {
 public:
  explicit CannotBeMade(const Config& config) {
    throw std::runtime_error("no file " + config.get<std::string>("file"));
  }
  Batch operator()(const Batch& batch) const { return batch; }
};

std::set<std::int64_t> distinct(const Dataset& dataset, const std::string& column) {
  std::set<std::int64_t> values;
  for (const Batch& batch : dataset.iter_batches()) {
    for (const std::int64_t value : batch.values<std::int64_t>(column)) values.insert(value);
  }
  return values;
}

TEST(Processes, RunFunctionsInOrderAndElsewhere) {
  const Dataset mapped = processes(range(100000)).map_batches(fn<with_process>, {.batch_size = 100, .concurrency = 3});
  std::int64_t next = 0;
  std::set<std::int64_t> workers;
  for (const Batch& batch : mapped.iter_batches({.batch_size = 1000})) {
    for (const std::int64_t id : batch.values<std::int64_t>("id")) ASSERT_EQ(id, next++);
    for (const std::int64_t process : batch.values<std::int64_t>("process")) workers.insert(process);
  }
  EXPECT_EQ(next, 100000);
  EXPECT_LE(workers.size(), 3U);
  EXPECT_FALSE(workers.contains(::getpid()));
}

TEST(Processes, AreTheDefaultWhereThereCanBeSome) {
  EXPECT_FALSE(distinct(range(10).map_batches(fn<with_process>), "process").contains(::getpid()));
}

TEST(Processes, AreThereBesideARunOfTheSameProgramAndBesideEachOther) {
  const auto run = worker::make_root_engine();  // as fit() has it
  const Dataset mapped = range(10'000).map_batches(fn<with_process>, {.batch_size = 100, .concurrency = 1});
  auto outer = mapped.iter_batches();
  std::set<std::int64_t> workers;
  std::int64_t rows = 0;
  for (const Batch& batch : outer) {
    if (rows == 0) {
      for (const std::int64_t worker : distinct(mapped, "process")) workers.insert(worker);
    }
    for (const std::int64_t worker : batch.values<std::int64_t>("process")) workers.insert(worker);
    rows += batch.num_rows();
  }
  EXPECT_EQ(rows, 10'000);
  EXPECT_THAT(workers, SizeIs(2)) << "one each";
  EXPECT_FALSE(workers.contains(::getpid()));
}

TEST(Processes, WithGpusAreNotThereBesideARunThatHasThem) {
  const auto run = worker::make_root_engine();
  const Dataset mapped = range(10).map_batches(fn<with_process>, {.batch_size = 1, .num_gpus = 1});
  EXPECT_THAT(message_of<EngineError>([&] { processes(mapped).count(); }), HasSubstr("another run in this process"));
}

TEST(Processes, GiveTextsListsAndNullsBackAsTheyWere) {
  const std::vector<Row> rows{{{"a", "x"}, {"b", list(1, 2)}, {"c", 1.5}},
                              {{"a", Value()}, {"b", Value()}, {"c", Value()}},
                              {{"a", ""}, {"b", List{}}, {"c", 2.5}}};
  EXPECT_EQ(processes(from_rows(rows)).map_batches(fn<with_process>).select_columns({"a", "b", "c"}).take_all(), rows);
}

TEST(Processes, NameAFunctionThatThrows) {
  EXPECT_EQ(message_of<DatasetError>([] {
              processes(range(100)).map_batches(fn<throws_in_worker>, {.batch_size = 10, .concurrency = 1}).count();
            }),
            "map_batches(throws_in_worker) has thrown std::invalid_argument: no such image");
}

TEST(Processes, NameAClassWhoseConstructorThrows) {
  EXPECT_EQ(message_of<DatasetError>([] {
              processes(range(100))
                  .map_batches(actor<CannotBeMade>(), {.constructor_config = {{"file", "model.pt"}}})
                  .count();
            }),
            "map_batches(CannotBeMade): its constructor has thrown std::runtime_error: no file model.pt");
}

TEST(Processes, GiveABatchToAnotherWorkerWhenOneDies) {
  const TemporaryDirectory directory;
  const Dataset mapped = processes(range(1000))
                             .map_batches(fn<dies>, {.batch_size = 10,
                                                     .concurrency = 2,
                                                     .config = {{"folder", directory.path().string()}, {"deaths", 3}}});
  EXPECT_EQ(mapped.sum("id"), Value(999 * 500));
}

TEST(Processes, GiveABatchUpThatKillsEveryWorker) {
  const TemporaryDirectory directory;
  const Dataset mapped =
      processes(range(1000))
          .map_batches(
              fn<dies>,
              {.batch_size = 10, .concurrency = 2, .config = {{"folder", directory.path().string()}, {"deaths", 99}}});
  EXPECT_THAT(
      message_of<DatasetError>([&] { mapped.count(); }),
      AllOf(HasSubstr("map_batches(dies) has failed 4 times"), HasSubstr("SIGKILL"), HasSubstr("about to die")));
}

// The cause may have been a short lack of memory.
TEST(Processes, TakeTheNextWorkerWhereOneDiesBeforeItsClassIsMade) {
  const TemporaryDirectory directory;
  const auto dying = [&](std::int64_t deaths) {
    return processes(range(1000))
        .map_batches(actor<DiesBeforeItIsMade>(),
                     {.batch_size = 10,
                      .concurrency = 1,
                      .constructor_config = {{"folder", directory.path().string()}, {"deaths", deaths}}});
  };
  EXPECT_EQ(dying(2).sum("id"), Value(999 * 500));
  EXPECT_THAT(message_of<DatasetError>([&] { dying(99).count(); }),
              AllOf(HasSubstr("map_batches(DiesBeforeItIsMade) has failed"),
                    HasSubstr("it cannot begin: its worker was ended by signal 9"), HasSubstr("about to die")));
}

TEST(Processes, MayReturnNothing) {
  EXPECT_THAT(processes(range(100)).map_batches(fn<returns_nothing>).take_all(), IsEmpty());
}

TEST(Processes, ReadObjectsThatTheirConfigRefersTo) {
  const ObjectRef amounts = put(std::vector<std::int64_t>{100, 20, 3});
  const Dataset sums = processes(range(10)).map_batches(actor<Adder>(), {.constructor_config = {{"amounts", amounts}}});
  EXPECT_EQ(sums.min("id"), Value(123));
  EXPECT_EQ(sums.max("id"), Value(132));  // the object is read again
}

TEST(Processes, HaveGpusOfTheirOwn) {
  const Dataset mapped =
      processes(range(100000))
          .map_batches(fn<with_devices>, {.batch_size = 10000, .concurrency = 1, .num_gpus = 1})
          .map_batches(fn<with_more_devices>, {.batch_size = 10000, .concurrency = 1, .num_gpus = 1});
  const Row row = mapped.take(1).front();
  EXPECT_THAT((std::vector{row.get<std::string>("devices"), row.get<std::string>("more_devices")}),
              UnorderedElementsAre("0", "1"));
}

TEST(Processes, DestroyTheirObjectsAtTheEnd) {
  const TemporaryDirectory directory;
  const Dataset mapped =
      processes(range(5000))
          .map_batches(
              actor<SaysGoodbye>(),
              {.batch_size = 10, .concurrency = 3, .constructor_config = {{"folder", directory.path().string()}}});
  EXPECT_EQ(mapped.count(), 5000);
  std::int64_t goodbyes = 0;
  std::int64_t rows = 0;
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    std::int64_t own = 0;
    std::ifstream(entry.path()) >> own;
    rows += own;
    ++goodbyes;
  }
  EXPECT_EQ(goodbyes, 3);
  EXPECT_EQ(rows, 5000);
}

TEST(Processes, AreCalledInTheOrderOfTheRowsWhereThereIsOne) {
  const Dataset mapped = processes(range(3000)).map_batches(actor<CallCounter>(), {.batch_size = 1});
  std::int64_t expected = 0;
  for (const Row& row : mapped.take_all()) {
    ASSERT_EQ(row.get<std::int64_t>("id"), expected);
    ASSERT_EQ(row.get<std::int64_t>("call"), expected++);
  }
  EXPECT_EQ(expected, 3000);
}

TEST(Processes, ThatCanNeverAllRunAreRefusedByName) {
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { processes(range(10)).map_batches(fn<with_process>, {.concurrency = 5}).count(); }),
              AllOf(HasSubstr("map_batches(with_process) can never run: 5 workers"), HasSubstr("4/4 CPUs")));
  EXPECT_THROW(processes(range(10))
                   .map_batches(fn<with_process>, {.concurrency = 3})
                   .map_batches(fn<with_devices>, {.concurrency = 2})
                   .count(),
               InvalidArgument);
}

TEST(Processes, OfManyOperatorsShareCpusUnlessTheirNumberIsSaid) {
  Dataset mapped = processes(range(100));
  for (int i = 0; i < 6; ++i) mapped = mapped.map_batches(fn<with_process>, {.batch_size = 10});
  EXPECT_EQ(mapped.count(), 100);
  EXPECT_THAT(
      message_of<InvalidArgument>([] { processes(range(10)).map_batches(fn<with_process>, {.num_cpus = 8}).count(); }),
      HasSubstr("map_batches(with_process) can never run: each of its workers needs 8 cpus (there are 4)"));
}

TEST(Processes, OfALoopThatIsLeftAreEnded) {
  const Dataset mapped = processes(range(100)).map_batches(fn<sleeps_for_ever>, {.batch_size = 1, .concurrency = 4});
  std::thread waits([&] { EXPECT_THAT(mapped.limit(0).take_all(), IsEmpty()); });
  waits.join();
  const Dataset later = processes(range(1000)).map_batches(fn<with_process>, {.batch_size = 1});
  for (const Batch& batch : later.iter_batches({.batch_size = 1})) {
    if (batch.num_rows() == 1) break;
  }
  EXPECT_EQ(later.count(), 1000);  // the engine is free again
}

}  // namespace
}  // namespace cadre::data
