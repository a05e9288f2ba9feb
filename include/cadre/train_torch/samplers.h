/// \file
/// Samplers: which examples of a dataset an epoch has, in which order, and which of them come in one batch.
///
/// Threads: a sampler is called in the thread that uses the loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cadre::train {

/// Returns the indices of an epoch's examples in their order, for all ranks together: each takes its share of them, as
/// DistributedSampler does. An index may be there any number of times. It must return the same for the same epoch, on
/// every rank and after an interruption.
using Sampler = std::function<std::vector<std::size_t>(std::uint64_t epoch)>;
/// Returns the batches of an epoch, for all ranks together: one batch goes to each rank in turn. Otherwise as Sampler.
using BatchSampler = std::function<std::vector<std::vector<std::size_t>>(std::uint64_t epoch)>;

/// Options of weighted_sampler.
struct WeightedSamplerOptions {
  std::optional<std::size_t> num_samples = {};  ///< examples in an epoch; default: as many as there are weights
  bool replacement = true;                      ///< whether an example may come several times in an epoch
  std::uint64_t seed = 0;                       ///< epoch `e` is drawn with seed + e
};

/// Draws examples in proportion to their weights, which need not sum to 1: more of rare classes, for example. Draws
/// what Python's torch.utils.data.WeightedRandomSampler does with a generator of the seed. Throws InvalidArgument for
/// weights that are negative or not finite, without a positive one, and for more samples without replacement than there
/// are positive weights.
Sampler weighted_sampler(std::vector<double> weights, const WeightedSamplerOptions& options = {});

/// Options of bucket_sampler.
struct BucketSamplerOptions {
  std::int64_t batch_size = 1;  ///< most examples in a batch, above 0
  /// Most items in a batch once all its examples are padded to the longest of them; default: any number.
  std::optional<std::int64_t> max_items = {};
  /// Batches among whose examples those of similar lengths are looked for, above 0. More: less padding; fewer: more
  /// chance in what comes together.
  std::int64_t window = 100;
  bool shuffle = true;     ///< another order in each epoch; otherwise windows of the dataset's order
  std::uint64_t seed = 0;  ///< seed for shuffling, equal on all ranks
  bool drop_last = false;  ///< drop batches that have room for another example only because their window ended
};

/// Puts examples of similar lengths into one batch, so that little of it is padding: shuffles all examples, cuts them
/// into windows, sorts each by length, cuts it into batches, and shuffles these. Batches that the ranks get for one
/// step are neighbours in length, so that no rank waits long for another one. `lengths` has one number for each
/// example. Throws InvalidArgument for options outside their ranges, negative lengths, and an example that is longer
/// than max_items.
BatchSampler bucket_sampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options = {});

}  // namespace cadre::train
