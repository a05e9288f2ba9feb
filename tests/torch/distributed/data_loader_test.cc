// Distributed samplers, and batches of their shares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cadre/torch/save_dict.h"
#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

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

// Expects each of two loops to give the three batches before the error, and then that.
void expect_the_error_at_its_batch(const DataLoaderOptions& options) {
  auto loader = prepare_data_loader(Failing(), options);
  for (int loop = 0; loop < 2; ++loop) {
    int count = 0;
    EXPECT_EQ(message_of<std::runtime_error>([&] {
                for ([[maybe_unused]] const auto& batch : loader) ++count;
              }),
              "example 3 is damaged");
    EXPECT_EQ(count, 3);
  }
}

TEST(DataLoader, AnErrorOfTheDatasetEndsTheLoopAndTheNextOneBeginsAnew) {
  for (const std::int64_t prefetch : {0, 2}) {
    expect_the_error_at_its_batch({.batch_size = 1, .prefetch = prefetch});
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

  using Numbered = Example<torch::Tensor, std::int64_t>;  // libtorch stacks no such targets
  struct NumberedExamples : datasets::Dataset<NumberedExamples, Numbered> {
    Numbered get(std::size_t index) override { return {torch::zeros(2), static_cast<std::int64_t>(index)}; }
    std::optional<std::size_t> size() const override { return 4; }
  };
  auto numbered = prepare_data_loader(NumberedExamples(), {.batch_size = 3});
  EXPECT_EQ(numbered.begin()->at(2).target, 2);
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

// Returns a dataset whose example i is (i + a random number below 1, i), or i and two such numbers.
auto jittered(std::int64_t count) {
  return transform(TensorDataset(torch::arange(count).to(torch::kDouble), torch::arange(count)),
                   [](const torch::Tensor& number, Random& random) { return number + random.uniform(); });
}

// Returns the values of one loop by example.
template <class Loader>
std::map<std::int64_t, double> values_of(Loader& loader) {
  std::map<std::int64_t, double> values;
  for (const auto& batch : loader) {
    for (std::int64_t i = 0; i < batch.target.size(0); ++i)
      values[batch.target[i].template item<std::int64_t>()] = batch.data[i].template item<double>();
  }
  return values;
}

TEST(DataLoader, WorkersMakeBatchesAtTheSameTimeAndGiveThemInOrder) {
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  struct Slow : torch::data::datasets::Dataset<Slow> {
    Slow(std::atomic<int>& running, std::atomic<int>& highest) : at_once(&running), most(&highest) {}
    torch::data::Example<> get(std::size_t index) override {
      *most = std::max(most->load(), ++*at_once);
      // Later batches of a round are ready first.
      std::this_thread::sleep_for(std::chrono::milliseconds(20 - 5 * static_cast<int>(index % 4)));
      --*at_once;
      return {torch::full({1}, static_cast<std::int64_t>(index)), torch::tensor(-static_cast<std::int64_t>(index))};
    }
    std::optional<std::size_t> size() const override { return 20; }
    std::atomic<int>* at_once;
    std::atomic<int>* most;
  };
  auto loader = prepare_data_loader(Slow(at_once, most), {.batch_size = 1, .num_workers = 4, .prefetch = 2});
  for (int loop = 0; loop < 2; ++loop) {
    const std::vector<Indices> batches = batches_of(loader);
    ASSERT_THAT(batches, SizeIs(20));
    for (std::size_t i = 0; i < batches.size(); ++i) EXPECT_THAT(batches[i], ElementsAre(i));
  }
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 4);
}

TEST(DataLoader, WorkersHaveCopiesOfTheDataset) {
  // Not safe for two threads: it has a place.
  struct Placed : torch::data::datasets::Dataset<Placed> {
    torch::data::Example<> get(std::size_t index) override {
      place = index;
      std::this_thread::yield();
      return {torch::full({1}, static_cast<std::int64_t>(place)), torch::tensor(-static_cast<std::int64_t>(index))};
    }
    std::optional<std::size_t> size() const override { return 200; }
    std::size_t place = 0;
  };
  auto loader = prepare_data_loader(Placed(), {.batch_size = 4, .num_workers = 3});
  EXPECT_THAT(batches_of(loader), SizeIs(50));

  struct Unique : torch::data::datasets::Dataset<Unique> {
    torch::data::Example<> get(std::size_t) override { return {torch::zeros(1), torch::zeros(1)}; }
    std::optional<std::size_t> size() const override { return 3; }
    std::unique_ptr<int> file;
  };
  EXPECT_EQ(prepare_data_loader(Unique()).size(), 3);
  EXPECT_THAT(message_of<InvalidArgument>([] { prepare_data_loader(Unique(), {.num_workers = 2}); }),
              HasSubstr("cannot be copied"));
}

TEST(DataLoader, AnErrorInOneOfSeveralWorkersComesAtItsBatch) {
  expect_the_error_at_its_batch({.batch_size = 1, .num_workers = 4, .prefetch = 3});
}

TEST(DataLoader, ATransformsNumbersDependOnSeedEpochAndExampleAlone) {
  const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 5};
  auto loader = prepare_data_loader(jittered(20), options);
  const auto first = values_of(loader);
  const auto second = values_of(loader);
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(std::floor(first.at(i)), i);
    EXPECT_NE(first.at(i), second.at(i)) << "another epoch";
  }
  EXPECT_NE(first.at(0), first.at(1) - 1) << "another example";

  DataLoaderOptions others = options;
  others.batch_size = 7;
  others.num_workers = 3;
  auto workers = prepare_data_loader(jittered(20), others);
  EXPECT_EQ(values_of(workers), first);
  workers.set_epoch(1);
  EXPECT_EQ(values_of(workers), second);
  others.seed = 6;
  auto reseeded = prepare_data_loader(jittered(20), others);
  EXPECT_NE(values_of(reseeded), first);

  run_ranks(2, [&](int) {
    auto share = prepare_data_loader(jittered(20), options);
    const auto values = values_of(share);
    EXPECT_THAT(values, SizeIs(10));
    for (const auto& [example, value] : values) EXPECT_EQ(value, first.at(example));
  });
}

TEST(DataLoader, TransformsOfOneAnotherHaveNumbersOfTheirOwn) {
  auto twice = transform(jittered(10), [](const torch::Tensor& number, Random& random) {
    return torch::stack({number, number.floor() + random.uniform()});
  });
  auto loader = prepare_data_loader(twice, {.batch_size = 10});
  const torch::Tensor data = loader.begin()->data;
  EXPECT_FALSE(data.select(1, 0).eq(data.select(1, 1)).any().item<bool>());
}

TEST(DataLoader, TransformsTakeDataOrExamplesAndMayLeaveRandomNumbersOut) {
  using Labelled = torch::data::Example<>;
  auto doubled = transform(numbers(4), [](const torch::Tensor& data) { return data * 2; });
  auto negated = transform(doubled, [](Labelled example) { return Labelled(example.target, example.data.squeeze(0)); });
  auto loader = prepare_data_loader(negated, {.batch_size = 4});
  EXPECT_TRUE(torch::equal(loader.begin()->data, -torch::arange(4)));
  EXPECT_TRUE(torch::equal(loader.begin()->target, 2 * torch::arange(4)));

  auto unlabelled = transform(torch::data::datasets::TensorDataset(torch::arange(4)),
                              [](const torch::Tensor& data) { return data + 1; });
  auto without_target = prepare_data_loader(unlabelled, {.batch_size = 4});
  EXPECT_TRUE(torch::equal(without_target.begin()->data, torch::arange(4) + 1));

  auto words =
      transform(numbers(4), [](const Labelled& example) { return std::to_string(example.target.item<int>()); });
  auto of_words = prepare_data_loader(words, {.batch_size = 2});
  EXPECT_THAT(*of_words.begin(), ElementsAre("0", "-1"));
}

TEST(DataLoader, ACollateFunctionMakesTheBatch) {
  // Sequences of different lengths, padded to the longest one.
  auto sequences = transform(numbers(5), [](const torch::data::Example<>& example) {
    return torch::ones(-example.target.item<std::int64_t>() + 1);
  });
  auto loader = prepare_data_loader(
      sequences, {.batch_size = 2, .num_workers = 2},
      [](const std::vector<torch::Tensor>& batch) { return torch::nn::utils::rnn::pad_sequence(batch, true); });
  std::vector<std::vector<std::int64_t>> shapes;
  for (const torch::Tensor& batch : loader) shapes.push_back(batch.sizes().vec());
  EXPECT_THAT(shapes, ElementsAre(ElementsAre(2, 2), ElementsAre(2, 4), ElementsAre(1, 5)));
}

TEST(DataLoader, GoesOnFromItsStateWithTheSameNumbers) {
  const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 5, .num_workers = 2};
  const auto batches_from = [&](auto& loader) {
    std::vector<torch::Tensor> batches;
    for (auto& batch : loader) batches.push_back(batch.data.clone());
    return batches;
  };
  auto undisturbed = prepare_data_loader(jittered(20), options);
  undisturbed.set_epoch(4);
  const std::vector<torch::Tensor> all = batches_from(undisturbed);
  ASSERT_THAT(all, SizeIs(7));
  const torch::Tensor first_of_next = undisturbed.begin()->data.clone();

  for (std::size_t taken = 0; taken <= all.size(); ++taken) {
    auto interrupted = prepare_data_loader(jittered(20), options);
    interrupted.set_epoch(4);
    Dict state = interrupted.state_dict();
    std::size_t count = 0;
    if (taken > 0) {
      for ([[maybe_unused]] const auto& batch : interrupted) {
        state = interrupted.state_dict();
        if (++count == taken) break;
      }
    }
    auto continued = prepare_data_loader(jittered(20), options);
    continued.load_state_dict(state);
    EXPECT_EQ(continued.epoch(), 4u);
    EXPECT_EQ(continued.state_dict(), state);
    const std::vector<torch::Tensor> rest = batches_from(continued);
    ASSERT_THAT(rest, SizeIs(all.size() - taken));
    for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_TRUE(torch::equal(rest[i], all[taken + i])) << taken;
    EXPECT_TRUE(torch::equal(continued.begin()->data, first_of_next)) << "the next epoch begins at its beginning";
  }
}

TEST(DataLoader, AnEpochThatIsSetAfterABrokenOffLoopBeginsAtItsBeginning) {
  auto loader = prepare_data_loader(numbers(20), {.batch_size = 3});
  loader.begin();
  EXPECT_EQ(loader.state_dict(), (Dict{{"epoch", 0}, {"examples", 3}}));
  loader.set_epoch(5);
  EXPECT_EQ(loader.state_dict(), (Dict{{"epoch", 5}, {"examples", 0}}));
  EXPECT_EQ(loader.epoch(), 5u);
  EXPECT_THAT(batches_of(loader), SizeIs(7));
  EXPECT_EQ(loader.state_dict(), (Dict{{"epoch", 6}, {"examples", 0}}));
}

TEST(DataLoader, AnotherNumberOfRanksGoesOnWithoutLosingOrRepeatingAnExample) {
  const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 5, .remainder = Remainder::keep};
  // Returns the examples of all ranks' batches, at most so many of each.
  const auto seen_by_all = [](auto& loader, int most) {
    torch::Tensor own = torch::full({50}, -1);
    std::int64_t count = 0;
    for (const auto& batch : loader) {
      own.slice(0, count, count + batch.target.size(0)).copy_(batch.target);
      count += batch.target.size(0);
      if (--most == 0) break;
    }
    std::multiset<std::int64_t> seen;
    for (const torch::Tensor& of_rank : all_gather(own))
      for (std::int64_t i = 0; i < 50; ++i)
        if (const auto example = of_rank[i].template item<std::int64_t>(); example >= 0) seen.insert(example);
    return seen;
  };
  const Dict state{{"epoch", 0}, {"examples", 24}};
  const Indices order = shares(50, 1, {.seed = 5})[0];
  run_ranks(4, [&](int) {
    auto loader = prepare_data_loader(jittered(50), options);
    EXPECT_EQ(seen_by_all(loader, 2), (std::multiset<std::int64_t>(order.begin(), order.begin() + 24)));
    EXPECT_EQ(loader.state_dict(), state);
  });
  run_ranks(3, [&](int) {
    auto loader = prepare_data_loader(jittered(50), options);
    loader.load_state_dict(state);
    EXPECT_EQ(seen_by_all(loader, 100), (std::multiset<std::int64_t>(order.begin() + 24, order.end())));
  });
}

TEST(DataLoader, ItsStateIsAnEntryOfACheckpoint) {
  const TemporaryDirectory directory;
  auto loader = prepare_data_loader(numbers(20), {.batch_size = 3});
  loader.begin();
  save_dict(directory / "state.pt", {{"loader", loader}});
  auto continued = prepare_data_loader(numbers(20), {.batch_size = 3});
  load_dict(directory / "state.pt", {{"loader", continued}});
  EXPECT_EQ(continued.state_dict(), (Dict{{"epoch", 0}, {"examples", 3}}));
  EXPECT_THAT(batches_of(continued), SizeIs(6));

  auto other = prepare_data_loader(numbers(2), {.batch_size = 1});
  save_dict(directory / "state.pt", {{"loader", loader}, {"step", 7}});
  std::int64_t step = 0;
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { load_dict(directory / "state.pt", {{"step", step}, {"loader", other}}); }),
      AllOf(HasSubstr("\"loader\""), HasSubstr("3 examples"), HasSubstr("which has 2")));
  EXPECT_EQ(step, 0) << "nothing was loaded";
  EXPECT_EQ(other.state_dict(), (Dict{{"epoch", 0}, {"examples", 0}}));
}

TEST(DataLoader, RefusesAStateThatIsNone) {
  auto loader = prepare_data_loader(numbers(20));
  for (const Dict& state : {Dict{}, Dict{{"epoch", 1}}, Dict{{"epoch", -1}, {"examples", 0}},
                            Dict{{"epoch", 1}, {"examples", "3"}}, Dict{{"epoch", 1}, {"batches", 3}}})
    EXPECT_THROW(loader.load_state_dict(state), InvalidArgument) << to_json(state);
}

TEST(DataLoader, ASamplerSaysTheOrderForAllRanks) {
  const Sampler twos = [](std::uint64_t epoch) { return Indices{2 * epoch, 2, 2, 4, 6}; };
  run_ranks(2, [&](int rank) {
    auto loader = prepare_data_loader(numbers(10), {.batch_size = 2, .sampler = twos});
    EXPECT_EQ(loader.size(), 2);
    EXPECT_EQ(batches_of(loader), (rank == 0 ? std::vector<Indices>{{0, 2}, {6}} : std::vector<Indices>{{2, 4}, {0}}));
    EXPECT_THAT(batches_of(loader).front().front(), rank == 0 ? 2u : 2u) << "epoch 1";
  });
  auto wrong = prepare_data_loader(numbers(5), {.sampler = [](std::uint64_t) { return Indices{0, 5}; }});
  EXPECT_THAT(message_of<InvalidArgument>([&] { wrong.begin(); }),
              AllOf(HasSubstr("the sampler has example 5 of a dataset of 5"), HasSubstr("epoch 0")));
  auto empty = prepare_data_loader(numbers(5), {.sampler = [](std::uint64_t) { return Indices(); }});
  EXPECT_THAT(message_of<InvalidArgument>([&] { empty.begin(); }), HasSubstr("the sampler has nothing"));
}

TEST(DataLoader, ABatchSamplerSaysTheBatchesForAllRanksInTurn) {
  const BatchSampler two_and_three = [](std::uint64_t) { return std::vector<Indices>{{0, 1}, {2, 3, 4}, {5}}; };
  run_ranks(2, [&](int rank) {
    auto loader = prepare_data_loader(numbers(10), {.batch_sampler = two_and_three});
    EXPECT_EQ(loader.size(), 2);
    EXPECT_EQ(batches_of(loader),
              (rank == 0 ? std::vector<Indices>{{0, 1}, {5}} : std::vector<Indices>{{2, 3, 4}, {0, 1}}));
    loader.begin();
    EXPECT_EQ(loader.state_dict(), (Dict{{"epoch", 1}, {"batches", 2}}));
    auto continued = prepare_data_loader(numbers(10), {.batch_sampler = two_and_three});
    continued.load_state_dict(loader.state_dict());
    EXPECT_THAT(batches_of(continued), SizeIs(1));
  });
  const BatchSampler with_gap = [](std::uint64_t) { return std::vector<Indices>{{0}, {}}; };
  auto gap = prepare_data_loader(numbers(10), {.batch_sampler = with_gap});
  EXPECT_THAT(message_of<InvalidArgument>([&] { gap.begin(); }), HasSubstr("the batch_sampler has an empty batch"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { prepare_data_loader(numbers(10), {.batch_size = 2, .batch_sampler = two_and_three}); }),
              HasSubstr("it says the batches itself"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { prepare_data_loader(numbers(10), {.shuffle = true, .sampler = weighted_sampler({1})}); }),
              HasSubstr("it says the order itself"));
}

TEST(BucketSampler, PutsExamplesOfSimilarLengthsTogether) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 1000; ++i) lengths.push_back(1 + i * 37 % 100);
  const auto padding = [&](const std::vector<Indices>& batches) {
    std::int64_t items = 0;
    std::int64_t padded = 0;
    for (const Indices& batch : batches) {
      std::int64_t longest = 0;
      for (const std::size_t i : batch) {
        items += lengths[i];
        longest = std::max(longest, lengths[i]);
      }
      padded += longest * static_cast<std::int64_t>(batch.size());
    }
    return static_cast<double>(padded) / static_cast<double>(items);
  };
  const auto everything_once = [&](const std::vector<Indices>& batches) {
    std::set<std::size_t> all;
    for (const Indices& batch : batches) all.insert(batch.begin(), batch.end());
    return all.size() == lengths.size();
  };
  const BatchSampler sampler = bucket_sampler(lengths, {.batch_size = 10, .seed = 3});
  const std::vector<Indices> first = sampler(0);
  EXPECT_TRUE(everything_once(first));
  EXPECT_LT(padding(first), 1.02);
  EXPECT_EQ(sampler(0), first);
  EXPECT_NE(sampler(1), first);
  EXPECT_GT(padding(bucket_sampler(lengths, {.batch_size = 10, .window = 1})(0)), 1.5) << "chance alone";

  const std::vector<Indices> limited = bucket_sampler(lengths, {.batch_size = 50, .max_items = 400})(0);
  EXPECT_TRUE(everything_once(limited));
  for (const Indices& batch : limited) {
    std::int64_t longest = 0;
    for (const std::size_t i : batch) longest = std::max(longest, lengths[i]);
    EXPECT_LE(longest * static_cast<std::int64_t>(batch.size()), 400);
    EXPECT_LE(batch.size(), 50u);
  }
}

TEST(BucketSampler, AWindowHasAtMostAllExamples) {
  const std::vector<std::int64_t> lengths{3, 1, 4, 1, 5, 9, 2, 6, 5};
  const auto batches = [&](std::int64_t window) {
    return bucket_sampler(lengths, {.batch_size = 4, .window = window, .shuffle = false})(0);
  };
  EXPECT_EQ(batches(3), batches(100));
  EXPECT_EQ(batches(std::int64_t{1} << 62), batches(100)) << "four times that is 0";
  EXPECT_EQ(batches(2).front(), (Indices{5, 7, 4, 2}));
  EXPECT_EQ(batches(100).front(), (Indices{5, 7, 4, 8}));
}

TEST(BucketSampler, RanksHaveBatchesOfSimilarLengthsInOneStep) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 400; ++i) lengths.push_back(i);
  run_ranks(4, [&](int) {
    const std::vector<Indices> batches = bucket_sampler(lengths, {.batch_size = 5})(0);
    for (std::size_t step = 0; step + 4 <= batches.size(); step += 4) {
      const auto [shortest, longest] =
          std::minmax({batches[step][0], batches[step + 1][0], batches[step + 2][0], batches[step + 3][0]});
      EXPECT_LE(longest - shortest, 15u);
    }
  });
}

TEST(BucketSampler, IsInOrderWithoutShufflingAndMayDropWhatIsNotFull) {
  const std::vector<std::int64_t> lengths{3, 1, 2, 5, 4};
  EXPECT_THAT(bucket_sampler(lengths, {.batch_size = 2, .shuffle = false})(7),
              ElementsAre(Indices{3, 4}, Indices{0, 2}, Indices{1}));
  EXPECT_THAT(bucket_sampler(lengths, {.batch_size = 2, .shuffle = false, .drop_last = true})(7),
              ElementsAre(Indices{3, 4}, Indices{0, 2}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { bucket_sampler({1, -1, 9}, {.batch_size = 0, .max_items = 8}); }),
              AllOf(HasSubstr("batch_size of 0"), HasSubstr("example 1 has a length of -1"),
                    HasSubstr("example 2 has a length of 9, more than max_items, 8")));
}

TEST(WeightedSampler, DrawsInProportion) {
  const Sampler sampler = weighted_sampler({1, 0, 3}, {.num_samples = 4000, .seed = 1});
  std::map<std::size_t, int> counts;
  for (const std::size_t index : sampler(0)) ++counts[index];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 3000, 150);
  EXPECT_EQ(sampler(2), sampler(2));
  EXPECT_NE(sampler(2), sampler(3));
  EXPECT_THAT(weighted_sampler({1, 0, 3}, {.num_samples = 2, .replacement = false})(0),
              ::testing::UnorderedElementsAre(0, 2));
  EXPECT_THAT(
      message_of<InvalidArgument>([] { weighted_sampler({-1, 0, std::nan("")}); }),
      AllOf(HasSubstr("the weight of example 0 is -1"), HasSubstr("example 2"), HasSubstr("no weight above 0")));
  EXPECT_THAT(message_of<InvalidArgument>([] { weighted_sampler({1, 0}, {.num_samples = 2, .replacement = false}); }),
              HasSubstr("2 samples without replacement of 1 examples"));
}

TEST(DataLoader, TakesTheProgramsOwnLoader) {
  auto dataset = torch::data::datasets::TensorDataset(torch::arange(10))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = prepare_data_loader(torch::data::make_data_loader(
      std::move(dataset), DistributedSampler(10, {.world_size = 2, .rank = 1, .shuffle = false}),
      torch::data::DataLoaderOptions().batch_size(2).workers(2).enforce_ordering(true)));
  for (int loop = 0; loop < 2; ++loop) {
    std::vector<std::int64_t> all;
    for (const auto& batch : loader) {
      EXPECT_EQ(batch.data.device().type(), get_device().type());
      for (std::int64_t i = 0; i < batch.data.numel(); ++i) all.push_back(batch.data[i].template item<std::int64_t>());
    }
    EXPECT_THAT(all, ElementsAre(1, 3, 5, 7, 9)) << loop;
  }
}

TEST(TensorDataset, WantsAsManyTargetsAsData) {
  EXPECT_THAT(message_of<InvalidArgument>([] { TensorDataset(torch::zeros({3, 2}), torch::zeros(4)); }),
              AllOf(HasSubstr("3 rows"), HasSubstr("4")));
  EXPECT_THROW(TensorDataset(torch::Tensor(), torch::zeros(4)), InvalidArgument);
  EXPECT_THROW(TensorDataset(torch::zeros({}), torch::zeros({})), InvalidArgument);
}

}  // namespace
}  // namespace cadre::train
