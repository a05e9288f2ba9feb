/// \file
/// A loader of this rank's batches of a dataset.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cadre/train_torch/distributed_sampler.h"
#include "cadre/train_torch/group.h"
#include "cadre/train_torch/tensors.h"

namespace cadre::train {

/// A dataset whose examples are the rows of two tensors, such as images and labels. Reading a batch takes one indexing
/// operation for each tensor.
class TensorDataset : public torch::data::datasets::BatchDataset<TensorDataset, torch::data::Example<>> {
 public:
  /// Makes a dataset whose example i is (data[i], target[i]). Throws InvalidArgument if the numbers of rows differ.
  TensorDataset(torch::Tensor data, torch::Tensor target);
  /// Returns the rows of these examples.
  torch::data::Example<> get_batch(torch::ArrayRef<std::size_t> indices) override;
  /// Returns the number of rows.
  std::optional<std::size_t> size() const override;

 private:
  torch::Tensor data_;
  torch::Tensor target_;
};

/// Options of prepare_data_loader.
struct DataLoaderOptions {
  std::int64_t batch_size = 1;           ///< examples in a batch of this rank, above 0
  bool shuffle = false;                  ///< a different order in each epoch, equal on all ranks before they divide it
  std::uint64_t seed = 0;                ///< seed for shuffling, equal on all ranks
  bool drop_last = false;                ///< drop the last batch of an epoch if it is smaller
  Remainder remainder = Remainder::pad;  ///< treatment of examples that cannot be divided evenly
  std::int64_t prefetch = 1;             ///< batches that a thread prepares ahead; 0: prepared on demand, by the caller
  bool move_to_device = true;            ///< move batches to get_device()
};

namespace detail {

// Returns this rank's sampler. Throws InvalidArgument for invalid options or an invalid size.
DistributedSampler make_sampler(std::optional<std::size_t> size, const DataLoaderOptions& options);
// Returns the number of batches of this rank in an epoch.
std::int64_t count_batches(std::size_t share, const DataLoaderOptions& options);

// A queue of items that a thread makes ahead of their use.
class Prefetcher {
 public:
  using Item = std::shared_ptr<void>;  // null: the end

  Prefetcher(std::function<Item()> make, std::int64_t ahead);
  ~Prefetcher();  // waits for the item that is being made
  Item next();    // throws exceptions of `make`

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Moves tensors to a device in one thread, for another thread that computes there.
class DeviceTransfer {
 public:
  explicit DeviceTransfer(std::optional<torch::Device> device);  // empty: tensors stay where they are
  // Replaces the tensors by copies on the device, which may be used after receive() has been called with the returned
  // object.
  std::shared_ptr<void> send(std::span<torch::Tensor* const> tensors) const;
  void receive(const std::shared_ptr<void>& sent, std::span<torch::Tensor* const> tensors) const;

 private:
  std::optional<torch::Device> device_;
  std::optional<c10::Stream> stream_;  // stream of the copies; empty if the device has none
};

// Converts a dataset's batch to the loop's type: examples of tensors are stacked.
template <class Batch>
struct Collation {
  using Result = Batch;
  static Result apply(Batch batch) { return batch; }
};
template <class Target>
struct Collation<std::vector<torch::data::Example<torch::Tensor, Target>>> {
  using Result = torch::data::Example<torch::Tensor, Target>;
  static Result apply(std::vector<Result> examples) {
    return torch::data::transforms::Stack<Result>().apply_batch(std::move(examples));
  }
};

template <class Dataset>
concept MapStyleDataset = requires(Dataset& dataset, torch::ArrayRef<std::size_t> indices) {
  { dataset.get_batch(indices) } -> std::same_as<typename Dataset::BatchType>;
  { dataset.size() } -> std::convertible_to<std::optional<std::size_t>>;
} && !Dataset::is_stateful;

}  // namespace detail

/// A loader of this rank's batches of a dataset. Each loop over it is one epoch; only one loop may run at a time, and a
/// new one ends the previous one. Made by prepare_data_loader.
template <detail::MapStyleDataset Dataset>
class DataLoader {
 public:
  /// The batch of a loop: an Example with .data and .target if the dataset returns examples of tensors, otherwise the
  /// return type of the dataset's get_batch.
  using Batch = typename detail::Collation<typename Dataset::BatchType>::Result;

  /// The position of a loop. Valid until the loader is moved.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< one pass
    using value_type = Batch;                           ///< a batch
    using difference_type = std::ptrdiff_t;             ///< not used
    using reference = Batch&;                           ///< the batch may be changed or moved from
    using pointer = Batch*;                             ///< as reference

    explicit Iterator(DataLoader* loader) : loader_(loader), loop_(loader->loops_) {}  ///< refers to the current loop
    /// Returns the batch, which is valid until the next ++.
    Batch& operator*() const { return loader_->current_->batch; }
    Batch* operator->() const { return &**this; }  ///< returns the batch, valid until the next ++
    /// Advances to the next batch. Throws exceptions of the dataset, which end the loop.
    Iterator& operator++() {
      if (!is_over()) loader_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }  ///< advances to the next batch
    /// Returns true if there is no further batch.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.is_over(); }

   private:
    bool is_over() const { return loop_ != loader_->loops_ || loader_->current_ == nullptr; }

    DataLoader* loader_;
    std::int64_t loop_;
  };

  /// Makes a loader: see prepare_data_loader.
  DataLoader(Dataset dataset, const DataLoaderOptions& options)
      : dataset_(std::make_unique<Dataset>(std::move(dataset))),
        options_(options),
        sampler_(detail::make_sampler(dataset_->size(), options)),
        transfer_(options.move_to_device ? std::optional(get_device()) : std::nullopt) {}
  DataLoader(DataLoader&&) = default;  ///< must not be called during a loop

  /// Starts an epoch: the one of set_epoch, or the one after the last. Throws exceptions of the dataset.
  Iterator begin() {
    finish();
    ++loops_;
    epoch_ = sampler_.epoch();
    start();
    sampler_.set_epoch(epoch_ + 1);
    advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }  ///< returns the end of every loop

  /// Returns the number of batches of this rank in an epoch.
  std::int64_t size() const { return detail::count_batches(sampler_.share(), options_); }
  /// Returns the epoch of the latest loop, from 0; before the first loop, and after set_epoch, that of the next loop.
  std::uint64_t epoch() const { return epoch_; }
  /// Sets the epoch of the next loop, for training that continues from a checkpoint.
  void set_epoch(std::uint64_t epoch) {
    sampler_.set_epoch(epoch);
    epoch_ = epoch;
  }

 private:
  struct Prefetched {
    Batch batch;
    std::shared_ptr<void> sent;
  };

  void start() {
    const auto batch_size = static_cast<std::size_t>(options_.batch_size);
    prefetcher_ = std::make_unique<detail::Prefetcher>(
        [dataset = dataset_.get(), transfer = transfer_, indices = sampler_.indices(), batch_size, left = size(),
         position = std::size_t{0}]() mutable -> detail::Prefetcher::Item {
          if (left-- == 0) return nullptr;
          const std::size_t count = std::min(batch_size, indices.size() - position);
          const auto batch = torch::ArrayRef<std::size_t>(indices).slice(position, count);
          position += count;
          auto made = std::make_shared<Prefetched>(
              Prefetched{detail::Collation<typename Dataset::BatchType>::apply(dataset->get_batch(batch)), nullptr});
          made->sent = transfer.send(detail::tensors_of(made->batch));
          return made;
        },
        options_.prefetch);
  }
  void advance() {
    current_.reset();
    try {
      current_ = std::static_pointer_cast<Prefetched>(prefetcher_->next());
    } catch (...) {
      finish();
      throw;
    }
    if (current_ == nullptr) return finish();
    transfer_.receive(current_->sent, detail::tensors_of(current_->batch));
  }
  void finish() {
    prefetcher_.reset();
    current_.reset();
  }

  std::unique_ptr<Dataset> dataset_;
  DataLoaderOptions options_;
  DistributedSampler sampler_;
  detail::DeviceTransfer transfer_;
  std::uint64_t epoch_ = 0;
  std::int64_t loops_ = 0;
  std::shared_ptr<Prefetched> current_;  // nullptr outside loops
  std::unique_ptr<detail::Prefetcher> prefetcher_;
};

/// Returns a loader of this rank's share of a dataset, in batches, on the worker's device. The dataset is a stateless
/// one of torch::data with a size, such as TensorDataset, or MNIST and the result of its map(). It is used in one
/// thread at a time, which is not the caller's if there is a prefetch. With Remainder::keep the ranks may have
/// different numbers of batches, which does not suit the training of a prepared model.
///
///     auto loader = train::prepare_data_loader(dataset, {.batch_size = 128, .shuffle = true});
///     for (int epoch = 0; epoch < 10; ++epoch) {
///       for (auto& batch : loader) train_on(batch.data, batch.target);
///     }
///
/// Throws InvalidArgument for a dataset without a size or with fewer examples than there are ranks, if drop_last would
/// drop every batch, and for invalid options.
template <detail::MapStyleDataset Dataset>
DataLoader<Dataset> prepare_data_loader(Dataset dataset, const DataLoaderOptions& options = {}) {
  return DataLoader<Dataset>(std::move(dataset), options);
}

}  // namespace cadre::train
