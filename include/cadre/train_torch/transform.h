/// \file
/// Datasets whose examples are changed when they are read, such as images that are cropped and flipped at random.
///
/// Random numbers of a change depend on the loader's seed, the epoch and the example, and on nothing else: a batch is
/// the same with any number of workers and ranks, and after an interruption.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/random.h"
#include "cadre/train_torch/tensors.h"

namespace cadre::train {

/// The random numbers of one epoch, for the changes of its examples.
struct EpochRandom {
  std::uint64_t seed = 0;   ///< the loader's seed
  std::uint64_t epoch = 0;  ///< the loader's epoch
  std::uint32_t layer = 0;  ///< how many transforms come after this one

  /// Returns the numbers of one example.
  KeyedRandom of(std::size_t index) const { return KeyedRandom::of_example(seed, epoch, index, layer); }
  /// Returns the numbers of the batch that begins with an example, for its collate function.
  KeyedRandom of_batch(std::size_t first) const { return KeyedRandom::of_example(seed, epoch, first, 255); }
  /// Returns the numbers of a dataset whose examples are changed with these.
  EpochRandom inner() const { return {seed, epoch, layer + 1}; }
};

namespace detail {

template <class Dataset>
concept MapStyleDataset = requires(Dataset& dataset, torch::ArrayRef<std::size_t> indices) {
  { dataset.get_batch(indices) } -> std::same_as<typename Dataset::BatchType>;
  { dataset.size() } -> std::convertible_to<std::optional<std::size_t>>;
} && !Dataset::is_stateful;

template <class Dataset>
concept RandomDataset = requires(Dataset& dataset, torch::ArrayRef<std::size_t> indices, const EpochRandom& random) {
  { dataset.get_batch(indices, random) } -> std::same_as<typename Dataset::BatchType>;
};

template <class Dataset>
typename Dataset::BatchType read_batch(Dataset& dataset, torch::ArrayRef<std::size_t> indices,
                                       const EpochRandom& random) {
  if constexpr (RandomDataset<Dataset>) {
    return dataset.get_batch(indices, random);
  } else {
    return dataset.get_batch(indices);
  }
}

// The examples of a batch: those of a list, or the rows of a batch of tensors.
template <class Batch>
struct Examples;
template <class Example>
struct Examples<std::vector<Example>> {
  using One = Example;
  static std::size_t count(const std::vector<Example>& batch) { return batch.size(); }
  static Example take(std::vector<Example>& batch, std::size_t i) { return std::move(batch[i]); }
};
template <>
struct Examples<torch::data::Example<>> {
  using One = torch::data::Example<>;
  static std::size_t count(const One& batch) { return static_cast<std::size_t>(batch.data.size(0)); }
  static One take(One& batch, std::size_t i) {
    const auto row = static_cast<std::int64_t>(i);
    return {batch.data[row], batch.target[row]};
  }
};

// Returns an example with other data; what is an example already stays as it is.
template <class Data, class Example>
auto with_data(Data data, Example example) {
  if constexpr (is_example<Data>) {
    return data;
  } else if constexpr (requires { example.target; }) {
    return torch::data::Example<Data, typename Example::TargetType>(std::move(data), std::move(example.target));
  } else {
    return torch::data::Example<Data, void>(std::move(data));
  }
}

// Calls a transform of data, or of whole examples, with random numbers if it takes them. The call comes before the rest
// of the example is moved: the order of a function's arguments is the compiler's.
template <class Function, class Example>
auto transformed(Function& function, Example example, Random& random) {
  if constexpr (requires { function(std::move(example.data), random); }) {
    auto data = function(std::move(example.data), random);
    return with_data(std::move(data), std::move(example));
  } else if constexpr (requires { function(std::move(example.data)); }) {
    auto data = function(std::move(example.data));
    return with_data(std::move(data), std::move(example));
  } else if constexpr (requires { function(std::move(example), random); }) {
    return function(std::move(example), random);
  } else {
    return function(std::move(example));
  }
}

}  // namespace detail

/// A dataset whose examples are changed by a function; made by transform().
template <detail::MapStyleDataset Dataset, class Function>
class TransformedDataset {
 public:
  /// An example before the change.
  using SourceExample = typename detail::Examples<typename Dataset::BatchType>::One;
  /// An example after it.
  using ExampleType =
      decltype(detail::transformed(std::declval<Function&>(), std::declval<SourceExample>(), std::declval<Random&>()));
  using BatchType = std::vector<ExampleType>;  ///< the examples of a batch
  static constexpr bool is_stateful = false;   ///< as torch::data asks

  /// Makes a dataset; use transform instead.
  TransformedDataset(Dataset dataset, Function function)
      : dataset_(std::move(dataset)), function_(std::move(function)) {}

  /// Returns these examples, changed with the random numbers of an epoch.
  BatchType get_batch(torch::ArrayRef<std::size_t> indices, const EpochRandom& random) {
    using Source = detail::Examples<typename Dataset::BatchType>;
    auto batch = detail::read_batch(dataset_, indices, random.inner());
    BatchType examples;
    examples.reserve(Source::count(batch));
    for (std::size_t i = 0; i < Source::count(batch); ++i) {
      KeyedRandom numbers = random.of(indices[i]);
      examples.push_back(detail::transformed(function_, Source::take(batch, i), *numbers));
    }
    return examples;
  }
  /// Does the same with those of seed 0 and epoch 0.
  BatchType get_batch(torch::ArrayRef<std::size_t> indices) { return get_batch(indices, {}); }
  std::optional<std::size_t> size() const { return dataset_.size(); }  ///< returns the number of examples

 private:
  Dataset dataset_;
  Function function_;
};

/// Returns a dataset whose examples are those of another one, changed by a function when they are read. The function
/// takes an example's data or the whole example, and a cadre::Random if it needs random numbers, and returns the new
/// ones:
///
///     auto augmented = train::transform(images, [](torch::Tensor image, cadre::Random& random) {
///       return random.uniform() < 0.5 ? image.flip(-1) : image;
///     });
///     auto loader = train::prepare_data_loader(augmented, {.batch_size = 128, .shuffle = true, .num_workers = 4});
///
/// A loader with several workers calls copies of it at the same time.
template <detail::MapStyleDataset Dataset, class Function>
TransformedDataset<Dataset, Function> transform(Dataset dataset, Function function) {
  return {std::move(dataset), std::move(function)};
}

}  // namespace cadre::train
