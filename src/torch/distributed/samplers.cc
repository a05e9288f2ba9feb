#include "cadre/train_torch/samplers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "cadre/error.h"
#include "torch/distributed/group.h"
#include "torch/distributed/shares.h"
#include "torch/faults.h"

namespace cadre::train {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

// Cuts examples that are sorted by length into batches.
class Cutting {
 public:
  Cutting(std::span<const std::int64_t> lengths, const BucketSamplerOptions& options)
      : lengths_(lengths), options_(&options) {}

  // `examples` are in descending order of length, so the first one of a batch is its longest.
  Batches cut(std::span<const std::size_t> examples) const {
    Batches batches;
    std::size_t begin = 0;
    while (begin < examples.size()) {
      const std::size_t most = most_with(lengths_[examples[begin]]);
      const std::size_t count = std::min(most, examples.size() - begin);
      if (count == most || !options_->drop_last) batches.emplace_back(&examples[begin], &examples[begin] + count);
      begin += count;
    }
    return batches;
  }

 private:
  std::size_t most_with(std::int64_t longest) const {
    std::int64_t most = options_->batch_size;
    if (options_->max_items && longest > 0) most = std::min(most, *options_->max_items / longest);
    return static_cast<std::size_t>(most);
  }

  std::span<const std::int64_t> lengths_;
  const BucketSamplerOptions* options_;
};

// Shuffles groups of neighbours, one batch of which goes to each rank; those that make no whole group come last.
Batches shuffle_groups(Batches batches, std::size_t group, std::uint64_t seed) {
  const std::size_t groups = batches.size() / group;
  Batches shuffled;
  for (const std::size_t from : distributed::permutation(groups, seed))
    for (std::size_t i = 0; i < group; ++i) shuffled.push_back(std::move(batches[from * group + i]));
  for (std::size_t i = groups * group; i < batches.size(); ++i) shuffled.push_back(std::move(batches[i]));
  return shuffled;
}

void check(std::span<const std::int64_t> lengths, const BucketSamplerOptions& options) {
  pt::Faults faults;
  if (options.batch_size < 1) faults.add("a batch_size of " + std::to_string(options.batch_size));
  if (options.window < 1) faults.add("a window of " + std::to_string(options.window) + " batches");
  if (options.max_items && *options.max_items < 1) faults.add("max_items of " + std::to_string(*options.max_items));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string example = "example " + std::to_string(i) + " has a length of " + std::to_string(lengths[i]);
    if (lengths[i] < 0) faults.add(example);
    if (options.max_items && lengths[i] > *options.max_items)
      faults.add(example + ", more than max_items, " + std::to_string(*options.max_items));
  }
  faults.throw_if_any("bucket_sampler");
}

}  // namespace

Sampler weighted_sampler(std::vector<double> weights, const WeightedSamplerOptions& options) {
  const std::size_t count = options.num_samples.value_or(weights.size());
  pt::Faults faults;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      faults.add("the weight of example " + std::to_string(i) + " is " + std::to_string(weights[i]));
  }
  const auto positive = static_cast<std::size_t>(std::ranges::count_if(weights, [](double one) { return one > 0; }));
  if (positive == 0) faults.add("there is no weight above 0");
  if (count == 0) faults.add("num_samples is 0");
  if (!options.replacement && count > positive)
    faults.add(std::to_string(count) + " samples without replacement of " + std::to_string(positive) + " examples");
  faults.throw_if_any("weighted_sampler");
  const torch::Tensor drawn_by = torch::tensor(weights, torch::kDouble);
  return [=](std::uint64_t epoch) {
    const torch::Tensor drawn = torch::multinomial(drawn_by, static_cast<std::int64_t>(count), options.replacement,
                                                   at::make_generator<at::CPUGeneratorImpl>(options.seed + epoch));
    const auto* const begin = static_cast<const std::int64_t*>(drawn.const_data_ptr());
    return std::vector<std::size_t>(begin, begin + count);
  };
}

BatchSampler bucket_sampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options) {
  check(lengths, options);
  const auto ranks = static_cast<std::size_t>(distributed::current_group().world_size);
  return [=, lengths = std::move(lengths)](std::uint64_t epoch) {
    const std::uint64_t seed = options.seed + epoch;
    std::vector<std::size_t> order =
        options.shuffle ? distributed::permutation(lengths.size(), seed) : distributed::in_order(lengths.size());
    const Cutting cutting(lengths, options);
    // A window has at most all examples: the product of what the options say may be too large for a number.
    const bool is_one = options.window > std::ssize(order) / options.batch_size;
    const std::size_t window =
        is_one ? order.size() : static_cast<std::size_t>(options.window) * static_cast<std::size_t>(options.batch_size);
    Batches batches;
    for (std::size_t begin = 0; begin < order.size(); begin += window) {
      const std::span<std::size_t> examples = std::span(order).subspan(begin, std::min(window, order.size() - begin));
      std::ranges::stable_sort(examples, std::greater(), [&](std::size_t one) { return lengths[one]; });
      std::ranges::move(cutting.cut(examples), std::back_inserter(batches));
    }
    return options.shuffle ? shuffle_groups(std::move(batches), ranks, seed) : batches;
  };
}

}  // namespace cadre::train
