// Memory limits of streaming execution, and its threads.
#include <arrow/memory_pool.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "cadre/data.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::TemporaryDirectory;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Batch negate(const Batch& batch) {
  std::vector<double> negative;
  for (const double value : batch.values<double>("x")) negative.push_back(-value);
  return Batch{{"x", std::move(negative)}};
}

// Writes rows of 8 bytes that do not compress, in row groups of 1 MiB.
void write_doubles(const std::filesystem::path& folder, std::int64_t bytes) {
  const std::int64_t rows = bytes / 8;
  std::vector<double> values(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) * 1.000001;
  from_batches({Batch{{"x", std::move(values)}}})
      .write_parquet(folder, {.max_rows_per_file = rows / 3, .rows_per_row_group = kMiB / 8, .compression = "none"});
}

class Streaming : public ::testing::Test {
 protected:
  static constexpr std::int64_t kLimit = 8 * kMiB;
  static constexpr std::int64_t kSize = 10 * kLimit;

  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    write_doubles(*directory_ / "rows", kSize);
  }
  static void TearDownTestSuite() { delete directory_; }

  Dataset dataset() const {
    return read_parquet((*directory_ / "rows").string())
        .with_options({.memory_limit_bytes = kLimit, .num_threads = 4, .function_place = FunctionPlace::threads});
  }

  static inline TemporaryDirectory* directory_ = nullptr;
};

TEST_F(Streaming, OfTenTimesTheLimitStaysWithinIt) {
  arrow::MemoryPool* const pool = arrow::default_memory_pool();
  const std::int64_t before = pool->bytes_allocated();
  std::int64_t most = 0;
  std::int64_t rows = 0;
  for (const Batch& batch : dataset().iter_batches({.batch_size = 10000})) {
    rows += batch.num_rows();
    most = std::max(most, pool->bytes_allocated() - before);
  }
  EXPECT_EQ(rows, kSize / 8);
  EXPECT_LE(most, kLimit);
  EXPECT_GE(most, kMiB / 8);  // proves that the rows are in Arrow's memory
}

TEST_F(Streaming, ThroughAFunctionStaysWithinTheLimit) {
  const Dataset mapped = dataset().map_batches(fn<negate>, {.batch_size = 5000, .concurrency = 3});
  EXPECT_DOUBLE_EQ(mapped.max("x").get<double>(), 0);
  const auto stats = *mapped.stats();
  EXPECT_LE(stats.peak_bytes, kLimit);
  EXPECT_EQ(stats.memory_limit_bytes, kLimit);
}

// While the consumer takes nothing, the operators before it come to rest: their memory stops growing.
TEST_F(Streaming, WaitsForWhoeverTakesNothing) {
  const Dataset mapped = dataset().map_batches(fn<negate>, {.batch_size = 5000});
  {
    const Batches batches = mapped.iter_batches({.batch_size = 5000, .prefetch_batches = 1});
    auto at = batches.begin();
    EXPECT_EQ(at->num_rows(), 5000);
  }
  const auto stats = *mapped.stats();
  EXPECT_LE(stats.peak_bytes, kLimit);
  EXPECT_LT(stats.operators.back().rows, kSize / 8);
}

// Returns when allocations have stopped, or when more than `most` bytes are allocated.
void wait_until_at_rest(std::int64_t most) {
  const arrow::MemoryPool& pool = *arrow::default_memory_pool();
  std::int64_t last = -1;
  for (int unchanged = 0; unchanged < 20 && pool.bytes_allocated() <= most; ++unchanged) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (std::exchange(last, pool.bytes_allocated()) != last) unchanged = 0;
  }
}

TEST(StreamingOneRowGroup, ThatIsLargerThanTheLimitStaysWithinIt) {
  constexpr std::int64_t kLimit = 8 * kMiB;
  const TemporaryDirectory directory;
  from_batches({Batch{{"x", std::vector<double>(5 * kMiB, 1.5)}}})
      .write_parquet(directory / "rows", {.rows_per_row_group = 5 * kMiB, .compression = "none"});
  const Dataset dataset = read_parquet((directory / "rows").string())
                              .with_options({.memory_limit_bytes = kLimit, .function_place = FunctionPlace::threads});
  const std::int64_t before = arrow::default_memory_pool()->bytes_allocated();
  const Batches batches = dataset.iter_batches({.batch_size = 1000});
  const auto at = batches.begin();
  wait_until_at_rest(before + kLimit);
  EXPECT_LE(arrow::default_memory_pool()->bytes_allocated() - before, kLimit);
  EXPECT_EQ(at->num_rows(), 1000);
}

TEST_F(Streaming, GoesOnWhereOneBlockIsLargerThanItsShare) {
  const Dataset rows = from_batches({Batch{{"x", std::vector<double>(4 * kMiB, 1.0)}}})
                           .with_options({.memory_limit_bytes = kMiB, .function_place = FunctionPlace::threads});
  EXPECT_DOUBLE_EQ(rows.map_batches(fn<negate>, {.batch_size = 4 * kMiB}).mean("x"), -1);
}

TEST_F(Streaming, OfALoopThatIsLeftEndsItsThreads) {
  for (int loop = 0; loop < 20; ++loop) {
    for (const Batch& batch : dataset().iter_batches({.batch_size = 1000, .prefetch_batches = 3})) {
      if (batch.num_rows() > 0) break;
    }
  }
}

TEST_F(Streaming, LeavesBatchesTheirMemory) {
  std::vector<Batch> kept;
  for (const Batch& batch : dataset().limit(50000).iter_batches({.batch_size = 7000})) kept.push_back(batch);
  double sum = 0;
  for (const Batch& batch : kept) {
    for (const double value : batch.values<double>("x")) sum += value;
  }
  EXPECT_NEAR(sum, 49999.0 * 25000 * 1.000001, 1);
}

std::mutex gate_mutex;
std::condition_variable gate_changed;
int in_gate = 0;

// Returns when two threads are in it.
Batch wait_for_another(const Batch& batch) {
  std::unique_lock lock(gate_mutex);
  ++in_gate;
  gate_changed.notify_all();
  gate_changed.wait(lock, [] { return in_gate >= 2; });
  return batch;
}

TEST_F(Streaming, CallsAFunctionInSeveralThreads) {
  in_gate = 0;
  const Dataset waits = dataset().map_batches(fn<wait_for_another>, {.batch_size = 100000, .concurrency = 2});
  EXPECT_EQ(waits.count(), kSize / 8);
}

}  // namespace
}  // namespace cadre::data
