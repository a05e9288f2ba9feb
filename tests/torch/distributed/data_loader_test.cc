// Distributed samplers, and batches of their shares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Indices = std::vector<std::size_t>;

// Returns the shares of all ranks in an epoch, by rank. tests/compat compares the indices with Python's.
std::vector<Indices> shares(std::size_t size, int world_size, DistributedSamplerOptions options,
                            std::uint64_t epoch = 0) {
  std::vector<Indices> all;
  for (int rank = 0; rank < world_size; ++rank) {
    options.world_size = world_size;
    options.rank = rank;
    DistributedSampler sampler(size, options);
    sampler.set_epoch(epoch);
    all.push_back(sampler.indices());
    EXPECT_EQ(sampler.share(), all.back().size());
  }
  return all;
}

TEST(DistributedSampler, SharesADatasetRankByRank) {
  EXPECT_THAT(shares(5, 2, {.shuffle = false}), ElementsAre(Indices{0, 2, 4}, Indices{1, 3, 0}));
  EXPECT_THAT(shares(5, 2, {.shuffle = false, .remainder = Remainder::drop}),
              ElementsAre(Indices{0, 2}, Indices{1, 3}));
  EXPECT_THAT(shares(5, 2, {.shuffle = false, .remainder = Remainder::keep}),
              ElementsAre(Indices{0, 2, 4}, Indices{1, 3}));
}

TEST(DistributedSampler, KeepsEveryExampleExactlyOnceInAnyOrder) {
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::multiset<std::size_t> all;
    for (const Indices& share : shares(23, 4, {.seed = 9, .remainder = Remainder::keep}, epoch)) {
      all.insert(share.begin(), share.end());
    }
    EXPECT_THAT(all, SizeIs(23));
    EXPECT_THAT(std::set<std::size_t>(all.begin(), all.end()), SizeIs(23));
  }
}

TEST(DistributedSampler, ShufflesByItsSeedAndEpoch) {
  const auto first = shares(50, 2, {.seed = 1}, 4);
  EXPECT_EQ(shares(50, 2, {.seed = 1}, 4), first);
  EXPECT_EQ(shares(50, 2, {.seed = 2}, 3), first) << "seed + epoch";
  EXPECT_NE(shares(50, 2, {.seed = 1}, 5), first);
}

TEST(DistributedSampler, GivesItsShareInBatchesAndItsCopiesFollowItsEpoch) {
  DistributedSampler sampler(7, {.world_size = 2, .rank = 0, .shuffle = true, .seed = 3});
  DistributedSampler copy = sampler;
  sampler.set_epoch(2);
  EXPECT_EQ(copy.epoch(), 2u);
  for (int pass = 0; pass < 2; ++pass) {
    copy.reset();
    Indices all;
    std::vector<std::size_t> sizes;
    while (const auto batch = copy.next(3)) {
      all.insert(all.end(), batch->begin(), batch->end());
      sizes.push_back(batch->size());
    }
    EXPECT_EQ(all, sampler.indices());
    EXPECT_THAT(sizes, ElementsAre(3, 1));
    EXPECT_FALSE(copy.next(1));
  }
  copy.reset(3);
  EXPECT_EQ(copy.share(), 2u);
  EXPECT_EQ(sampler.share(), 4u);
}

TEST(DistributedSampler, GoesOnFromWhatItSaved) {
  const DistributedSamplerOptions options{.world_size = 2, .rank = 1, .seed = 3};
  DistributedSampler sampler(20, options);
  sampler.set_epoch(5);
  sampler.reset();
  sampler.next(4);
  torch::serialize::OutputArchive saved;
  sampler.save(saved);
  std::stringstream stream;
  saved.save_to(stream);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  DistributedSampler loaded(20, options);
  loaded.load(archive);
  EXPECT_EQ(loaded.epoch(), 5u);
  EXPECT_EQ(loaded.next(100), sampler.next(100));
  DistributedSampler smaller(4, options);
  EXPECT_THROW(smaller.load(archive), InvalidArgument);
}

TEST(DistributedSampler, WorksInPyTorchsLoader) {
  auto dataset = torch::data::datasets::TensorDataset(torch::arange(10))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  DistributedSampler sampler(10, {.world_size = 2, .rank = 1, .shuffle = false});
  auto loader = torch::data::make_data_loader(std::move(dataset), sampler, 2);
  std::vector<std::int64_t> all;
  for (const auto& batch : *loader) {
    const auto* const values = static_cast<const std::int64_t*>(batch.data.const_data_ptr());
    all.insert(all.end(), values, values + batch.data.numel());
  }
  EXPECT_THAT(all, ElementsAre(1, 3, 5, 7, 9));
}

TEST(DistributedSampler, RefusesRanksThatThereAreNotAndEmptyDatasets) {
  EXPECT_THAT(message_of<InvalidArgument>([] { DistributedSampler(0, {.world_size = 2, .rank = 2}); }),
              AllOf(HasSubstr("is empty"), HasSubstr("no rank 2 in a world of 2")));
  EXPECT_THROW(DistributedSampler(5, {.world_size = 0, .rank = 0}), InvalidArgument);
  EXPECT_THROW(DistributedSampler(5).reset(0), InvalidArgument);
}

// Returns a dataset whose example i is (i, -i).
TensorDataset numbers(std::int64_t count) {
  return TensorDataset(torch::arange(count).unsqueeze(1), -torch::arange(count));
}

// Returns the examples of one loop, batch by batch.
template <class Loader>
std::vector<Indices> batches_of(Loader& loader) {
  std::vector<Indices> batches;
  for (const auto& batch : loader) {
    EXPECT_TRUE(torch::equal(batch.data.squeeze(1), -batch.target));
    EXPECT_EQ(batch.data.device().type(), get_device().type());
    const torch::Tensor data = batch.data.cpu();
    const auto* const values = static_cast<const std::int64_t*>(data.const_data_ptr());
    batches.emplace_back(values, values + data.numel());
  }
  return batches;
}

TEST(DataLoader, GivesTheDatasetInBatchesOnceALoop) {
  for (const std::int64_t prefetch : {0, 1, 3, 100}) {
    auto loader = prepare_data_loader(numbers(5), {.batch_size = 2, .prefetch = prefetch});
    EXPECT_EQ(loader.size(), 3);
    for (int loop = 0; loop < 3; ++loop) {
      EXPECT_THAT(batches_of(loader), ElementsAre(Indices{0, 1}, Indices{2, 3}, Indices{4})) << prefetch;
    }
  }
  auto dropping = prepare_data_loader(numbers(5), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(dropping.size(), 2);
  EXPECT_THAT(batches_of(dropping), ElementsAre(Indices{0, 1}, Indices{2, 3}));
}

TEST(DataLoader, EachLoopIsAnEpochWithAnotherOrder) {
  auto loader = prepare_data_loader(numbers(20), {.batch_size = 20, .shuffle = true, .seed = 4});
  EXPECT_EQ(loader.epoch(), 0u);
  std::vector<std::vector<Indices>> epochs;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    epochs.push_back(batches_of(loader));
    EXPECT_EQ(loader.epoch(), epoch);
    EXPECT_EQ(epochs.back()[0], shares(20, 1, {.seed = 4}, epoch)[0]);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  loader.set_epoch(1);
  EXPECT_EQ(loader.epoch(), 1u);
  EXPECT_EQ(batches_of(loader), epochs[1]);
  EXPECT_EQ(batches_of(loader), epochs[2]);
}

TEST(DataLoader, EachRankGetsItsShare) {
  run_ranks(2, [](int rank) {
    auto padded = prepare_data_loader(numbers(5), {.batch_size = 2});
    EXPECT_EQ(padded.size(), 2);
    EXPECT_EQ(batches_of(padded), (rank == 0 ? std::vector<Indices>{{0, 2}, {4}} : std::vector<Indices>{{1, 3}, {0}}));
    auto kept = prepare_data_loader(numbers(5), {.batch_size = 2, .remainder = Remainder::keep});
    EXPECT_EQ(kept.size(), rank == 0 ? 2 : 1);
    EXPECT_EQ(batches_of(kept), (rank == 0 ? std::vector<Indices>{{0, 2}, {4}} : std::vector<Indices>{{1, 3}}));
    auto dropped = prepare_data_loader(numbers(5), {.batch_size = 2, .remainder = Remainder::drop});
    EXPECT_EQ(dropped.size(), 1);
    EXPECT_THAT(message_of<InvalidArgument>([] { prepare_data_loader(numbers(1)); }),
                HasSubstr("1 examples for 2 ranks"));
  });
}

TEST(DataLoader, ABrokenOffLoopEndsAndSoDoesAnOlderOne) {
  auto loader = prepare_data_loader(numbers(100), {.prefetch = 2});
  for (const auto& batch : loader) {
    if (batch.target.item<std::int64_t>() == -3) break;
  }
  int outer = 0;
  for ([[maybe_unused]] const auto& batch : loader) {
    EXPECT_THAT(batches_of(loader), SizeIs(100));
    ++outer;
  }
  EXPECT_EQ(outer, 1);
  auto moved = std::move(loader);
  EXPECT_THAT(batches_of(moved), SizeIs(100));
  EXPECT_EQ(moved.epoch(), 3u);
}

struct Failing : torch::data::datasets::Dataset<Failing> {
  torch::data::Example<> get(std::size_t index) override {
    if (index == 3) throw std::runtime_error("example 3 is damaged");
    return {torch::full({1}, static_cast<std::int64_t>(index)), torch::tensor(-static_cast<std::int64_t>(index))};
  }
  std::optional<std::size_t> size() const override { return 5; }
};

TEST(DataLoader, AnErrorOfTheDatasetEndsTheLoopAndTheNextOneBeginsAnew) {
  for (const std::int64_t prefetch : {0, 2}) {
    auto loader = prepare_data_loader(Failing(), {.batch_size = 1, .prefetch = prefetch});
    for (int loop = 0; loop < 2; ++loop) {
      int count = 0;
      EXPECT_EQ(message_of<std::runtime_error>([&] {
                  for ([[maybe_unused]] const auto& batch : loader) ++count;
                }),
                "example 3 is damaged");
      EXPECT_EQ(count, 3);
    }
    auto at_once = prepare_data_loader(Failing(), {.batch_size = 5, .prefetch = prefetch});
    EXPECT_THROW(at_once.begin(), std::runtime_error);
  }
}

// Records the threads in which it is used.
struct Tracing : torch::data::datasets::Dataset<Tracing> {
  explicit Tracing(std::set<std::thread::id>& its_threads) : threads(&its_threads) {}
  torch::data::Example<> get(std::size_t) override {
    threads->insert(std::this_thread::get_id());
    return {torch::zeros(1), torch::zeros(1)};
  }
  std::optional<std::size_t> size() const override { return 10; }

  std::set<std::thread::id>* threads;
};

TEST(DataLoader, MakesBatchesInItsThreadUnlessThereIsNoPrefetch) {
  for (const std::int64_t prefetch : {0, 1}) {
    std::set<std::thread::id> threads;
    auto loader = prepare_data_loader(Tracing(threads), {.batch_size = 2, .prefetch = prefetch});
    for ([[maybe_unused]] const auto& batch : loader) {
    }
    EXPECT_THAT(threads, SizeIs(1));
    EXPECT_EQ(threads.contains(std::this_thread::get_id()), prefetch == 0);
  }
}

TEST(DataLoader, TakesEveryKindOfMapStyleDataset) {
  using namespace torch::data;
  auto singles = prepare_data_loader(datasets::TensorDataset(torch::arange(4)), {.batch_size = 3});
  EXPECT_TRUE(torch::equal(singles.begin()->data, torch::arange(3)));

  auto mapped = prepare_data_loader(datasets::TensorDataset(torch::arange(4)).map(transforms::Stack<TensorExample>()),
                                    {.batch_size = 3});
  EXPECT_TRUE(torch::equal(mapped.begin()->data, torch::arange(3)));

  auto doubled = prepare_data_loader(
      datasets::TensorDataset(torch::arange(4)).map(transforms::Lambda<TensorExample>([](TensorExample example) {
        return TensorExample(example.data * 2);
      })),
      {.batch_size = 3});
  EXPECT_TRUE(torch::equal(doubled.begin()->data, torch::arange(3) * 2));

  struct Words : datasets::Dataset<Words, std::string> {
    std::string get(std::size_t index) override { return std::to_string(index); }
    std::optional<std::size_t> size() const override { return 4; }
  };
  auto words = prepare_data_loader(Words(), {.batch_size = 3});
  EXPECT_THAT(*words.begin(), ElementsAre("0", "1", "2"));
}

TEST(DataLoader, RefusesWhatItCannotShareAllAtOnce) {
  struct Stream : torch::data::datasets::Dataset<Stream> {
    torch::data::Example<> get(std::size_t) override { return {}; }
    std::optional<std::size_t> size() const override { return std::nullopt; }
  };
  EXPECT_THAT(message_of<InvalidArgument>([] { prepare_data_loader(Stream(), {.batch_size = 0, .prefetch = -1}); }),
              AllOf(HasSubstr("no size"), HasSubstr("batch_size of 0"), HasSubstr("prefetch of -1")));
  EXPECT_THAT(message_of<InvalidArgument>([] { prepare_data_loader(numbers(0)); }),
              HasSubstr("0 examples for 1 ranks"));
  EXPECT_THAT(
      message_of<InvalidArgument>([] { prepare_data_loader(numbers(3), {.batch_size = 4, .drop_last = true}); }),
      HasSubstr("drop_last leaves nothing of a share of 3 examples"));
}

TEST(TensorDataset, WantsAsManyTargetsAsData) {
  EXPECT_THAT(message_of<InvalidArgument>([] { TensorDataset(torch::zeros({3, 2}), torch::zeros(4)); }),
              AllOf(HasSubstr("3 rows"), HasSubstr("4")));
  EXPECT_THROW(TensorDataset(torch::Tensor(), torch::zeros(4)), InvalidArgument);
  EXPECT_THROW(TensorDataset(torch::zeros({}), torch::zeros({})), InvalidArgument);
}

}  // namespace
}  // namespace cadre::train
