/// \file
/// A loader of this rank's batches of a dataset.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/train_torch/distributed_sampler.h"
#include "cadre/train_torch/group.h"
#include "cadre/train_torch/samplers.h"
#include "cadre/train_torch/tensors.h"
#include "cadre/train_torch/transform.h"
#include "cadre/value.h"

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
  std::uint64_t seed = 0;                ///< seed for shuffling and for transform(), equal on all ranks
  bool drop_last = false;                ///< drop the last batch of an epoch if it is smaller
  Remainder remainder = Remainder::pad;  ///< treatment of examples, or batches, that cannot be divided evenly
  Sampler sampler = {};                  ///< order of the examples, instead of `shuffle`
  BatchSampler batch_sampler = {};       ///< the batches, instead of `batch_size`, `shuffle`, `sampler`, `drop_last`
  /// Threads that make batches at the same time, each with a copy of the dataset if there are several: they need no
  /// processes as Python's do, so nothing is copied between them. 0: the caller makes each batch when it needs it.
  std::int64_t num_workers = 1;
  std::int64_t prefetch = 1;   ///< batches that each worker makes ahead; 0 has the meaning of num_workers = 0
  bool move_to_device = true;  ///< move batches to get_device(), to a GPU by way of pinned memory, beside computation
  bool pin_memory = false;     ///< with move_to_device = false: put them in pinned memory if there is a GPU
};

namespace detail {

// The batches of one rank in an epoch, or the rest of one.
struct BatchPlan {
  std::vector<std::size_t> indices = {};  // of the dataset's examples, batch by batch
  std::vector<std::size_t> ends = {};     // of each batch in them

  std::size_t size() const { return ends.size(); }
  torch::ArrayRef<std::size_t> batch(std::size_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends[number - 1];
    return torch::ArrayRef<std::size_t>(indices).slice(begin, ends[number] - begin);
  }
};

// Chooses the batches of this rank. A position in an epoch is a number of examples, or of batches with a batch sampler,
// that all ranks have together: other numbers of ranks can go on from it.
class BatchOrder {
 public:
  // Throws InvalidArgument for invalid options or an invalid size.
  BatchOrder(std::optional<std::size_t> size, const DataLoaderOptions& options);
  // Returns what is left after a position. Throws InvalidArgument for a sampler's faults.
  BatchPlan plan(std::uint64_t epoch, std::size_t position) const;
  // Returns the number of this rank's batches in an epoch.
  std::int64_t count(std::uint64_t epoch) const;
  // Returns the position after some batches more of each rank.
  std::size_t advance(std::size_t position, std::size_t batches) const;
  // Convert a position to a state and back. from_state() throws InvalidArgument for a state of another loader.
  Dict to_state(std::uint64_t epoch, std::size_t position) const;
  std::pair<std::uint64_t, std::size_t> from_state(const Dict& state) const;

 private:
  std::size_t units(std::uint64_t epoch) const;

  std::size_t size_;
  std::size_t world_size_;
  std::size_t rank_;
  DataLoaderOptions options_;
};

// Makes batches in threads ahead of their use, and gives them out in order.
class BatchWorkers {
 public:
  using Item = std::shared_ptr<void>;
  // Makes batch `number`, from 0, in a worker, or in the caller's thread as worker 0; null: there is none, and no later
  // one.
  using Make = std::function<Item(std::size_t worker, std::size_t number)>;

  BatchWorkers(Make make, std::size_t workers, std::size_t ahead);  // each makes so many ahead
  ~BatchWorkers();                                                  // waits for the batches that are being made
  Item next();                                                      // throws exceptions of `make`; null: the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Moves tensors to a device in one thread, for another thread that computes there.
class DeviceTransfer {
 public:
  explicit DeviceTransfer(const DataLoaderOptions& options);
  // Replaces the tensors by copies on the device, which may be used after receive() has been called with the returned
  // object.
  std::shared_ptr<void> send(std::span<torch::Tensor* const> tensors) const;
  void receive(const std::shared_ptr<void>& sent, std::span<torch::Tensor* const> tensors) const;

 private:
  std::optional<torch::Device> device_;  // empty: tensors stay where they are
  bool pin_memory_;
  std::optional<c10::Stream> stream_;  // stream of the copies; empty if the device has none
};

// True for a list of examples of tensors, with targets that are tensors or without: libtorch stacks no others.
template <class T>
inline constexpr bool are_tensor_examples = false;
template <>
inline constexpr bool are_tensor_examples<std::vector<torch::data::Example<>>> = true;
template <>
inline constexpr bool are_tensor_examples<std::vector<torch::data::TensorExample>> = true;

template <class Loader>
using BatchOfLoader = std::remove_cvref_t<decltype(*std::declval<Loader&>().begin())>;

// A collate function that takes random numbers, too.
template <class Collate, class Examples>
concept RandomCollate = std::invocable<Collate&, Examples, Random&>;
// Names the type that a collate function returns.
template <class Collate, class Examples>
struct Collated {
  using Batch = std::remove_cvref_t<std::invoke_result_t<Collate&, Examples>>;
};
template <class Collate, class Examples>
  requires RandomCollate<Collate, Examples>
struct Collated<Collate, Examples> {
  using Batch = std::remove_cvref_t<std::invoke_result_t<Collate&, Examples, Random&>>;
};

// A loop over batches that are made ahead.
template <class Batch>
class BatchLoop {
 public:
  using MakeBatch = std::function<std::optional<Batch>(std::size_t worker, std::size_t number)>;

  BatchLoop(MakeBatch make, const DataLoaderOptions& options, const DeviceTransfer& transfer)
      : transfer_(transfer),
        workers_(
            [make = std::move(make), transfer](std::size_t worker, std::size_t number) -> BatchWorkers::Item {
              auto batch = make(worker, number);
              if (!batch) return nullptr;
              auto made = std::make_shared<Made>(Made{*std::move(batch), nullptr});
              made->sent = transfer.send(tensors_of(made->batch));
              return made;
            },
            static_cast<std::size_t>(options.prefetch == 0 ? 0 : options.num_workers),
            static_cast<std::size_t>(options.prefetch)) {}

  // Goes to the next batch; false: there is none.
  bool advance() {
    current_.reset();
    current_ = std::static_pointer_cast<Made>(workers_.next());
    if (current_ == nullptr) return false;
    transfer_.receive(current_->sent, tensors_of(current_->batch));
    return true;
  }
  Batch& batch() const { return current_->batch; }

 private:
  struct Made {
    Batch batch;
    std::shared_ptr<void> sent;
  };

  DeviceTransfer transfer_;
  std::shared_ptr<Made> current_;
  BatchWorkers workers_;
};

// Goes to a loop's next batch; ends the loop and returns false if there is none, and ends it at an exception.
template <class Batch>
bool advance(std::unique_ptr<BatchLoop<Batch>>& loop) {
  try {
    if (loop->advance()) return true;
  } catch (...) {
    loop.reset();
    throw;
  }
  loop.reset();
  return false;
}

// Returns a dataset, and copies of it for all workers but the first.
template <class Dataset>
std::vector<std::unique_ptr<Dataset>> copies_of(Dataset dataset, const DataLoaderOptions& options) {
  std::vector<std::unique_ptr<Dataset>> copies;
  copies.push_back(std::make_unique<Dataset>(std::move(dataset)));
  for (std::int64_t worker = 1; worker < options.num_workers; ++worker) {
    if constexpr (std::copy_constructible<Dataset>) {
      copies.push_back(std::make_unique<Dataset>(*copies.front()));
    } else {
      throw InvalidArgument("prepare_data_loader: the dataset cannot be copied, as several workers need it");
    }
  }
  return copies;
}

// The position of a loop over a loader's batches.
template <class Loader>
class BatchIterator {
 public:
  using iterator_category = std::input_iterator_tag;  ///< one pass
  using value_type = typename Loader::Batch;          ///< a batch
  using difference_type = std::ptrdiff_t;             ///< not used
  using reference = value_type&;                      ///< the batch may be changed or moved from
  using pointer = value_type*;                        ///< as reference

  explicit BatchIterator(Loader* loader) : loader_(loader), loop_(loader->loops_) {}
  value_type& operator*() const { return loader_->loop_->batch(); }
  value_type* operator->() const { return &**this; }
  BatchIterator& operator++() {
    if (!is_over()) loader_->advance();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const BatchIterator& iterator, std::default_sentinel_t) { return iterator.is_over(); }

 private:
  bool is_over() const { return loop_ != loader_->loops_ || loader_->loop_ == nullptr; }

  Loader* loader_;
  std::int64_t loop_;
};

}  // namespace detail

/// Makes a batch of what a dataset returns: examples of tensors, with targets that are tensors or without, are stacked;
/// everything else stays as it is. The default of prepare_data_loader.
struct StackExamples {
  /// Makes the batch. Throws c10::Error for tensors of different shapes.
  template <class Examples>
  auto operator()(Examples examples) const {
    if constexpr (detail::are_tensor_examples<Examples>) {
      return torch::data::transforms::Stack<typename Examples::value_type>().apply_batch(std::move(examples));
    } else {
      return examples;
    }
  }
};

/// A loader of this rank's batches of a dataset. Each loop over it is one epoch; only one loop may run at a time, and a
/// new one ends the previous one. Made by prepare_data_loader.
template <detail::MapStyleDataset Dataset, class Collate = StackExamples>
class DataLoader {
 public:
  /// The batch of a loop: what the collate function returns. By default an Example with .data and .target if the
  /// dataset returns examples of tensors, otherwise the return type of the dataset's get_batch.
  using Batch = typename detail::Collated<Collate, typename Dataset::BatchType>::Batch;
  /// The position of a loop: an input iterator, valid until the loader is moved; its batch may be changed or moved
  /// from, and is valid until the next ++, which throws exceptions of the dataset, and then the loop is over.
  using Iterator = detail::BatchIterator<DataLoader>;

  /// Makes a loader: see prepare_data_loader.
  DataLoader(Dataset dataset, const DataLoaderOptions& options, Collate collate)
      : options_(options),
        order_(dataset.size(), options),
        transfer_(options),
        source_(std::make_unique<Source>(Source{detail::copies_of(std::move(dataset), options), std::move(collate)})) {}
  DataLoader(DataLoader&&) = default;  ///< must not be called during a loop

  /// Starts an epoch: the one of set_epoch, or the one after the last; the rest of one after load_state_dict. Throws
  /// exceptions of the dataset.
  Iterator begin() {
    loop_.reset();
    ++loops_;
    taken_ = 0;
    std::tie(epoch_, position_) = next_;
    loop_ = std::make_unique<detail::BatchLoop<Batch>>(
        [source = source_.get(), plan = order_.plan(epoch_, position_), random = EpochRandom{options_.seed, epoch_}](
            std::size_t worker, std::size_t number) -> std::optional<Batch> {
          if (number >= plan.size()) return std::nullopt;
          const auto indices = plan.batch(number);
          auto examples = detail::read_batch(*source->datasets[worker], indices, random);
          if constexpr (detail::RandomCollate<Collate, typename Dataset::BatchType>) {
            KeyedRandom numbers = random.of_batch(indices.front());
            return source->collate(std::move(examples), *numbers);
          } else {
            return source->collate(std::move(examples));
          }
        },
        options_, transfer_);
    next_ = {epoch_ + 1, 0};
    advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }  ///< returns the end of every loop

  /// Returns the number of batches of this rank in the epoch of epoch(), from its beginning.
  std::int64_t size() const { return order_.count(epoch_); }
  /// Returns the epoch of the latest loop, from 0; before the first loop, and after set_epoch and load_state_dict, that
  /// of the next loop.
  std::uint64_t epoch() const { return epoch_; }
  /// Sets the epoch of the next loop, for training that continues from a checkpoint. A present loop goes on as it is.
  void set_epoch(std::uint64_t epoch) {
    next_ = {epoch, 0};
    epoch_ = epoch;
  }

  /// Returns the place in the data, for a checkpoint: {"epoch", "examples"}, where the examples are those of the epoch
  /// that all ranks have had, with the present batch ("batches" with a batch_sampler). Equal on all ranks if they have
  /// had as many batches. After set_epoch it is the beginning of that epoch. The entry of save_dict for a loader is
  /// this.
  Dict state_dict() const {
    const bool is_epoch_set = next_.first == epoch_;  // during a loop next_ is the epoch after it, unless it was set
    if (loop_ == nullptr || is_epoch_set) return order_.to_state(next_.first, next_.second);
    return order_.to_state(epoch_, order_.advance(position_, taken_));
  }
  /// Lets the next loop go on after that place, also with another number of ranks. Ends a present loop. Throws
  /// InvalidArgument for a state of another kind of loader or of a dataset of another size; then nothing has changed.
  void load_state_dict(const Dict& state) { prepare(state)(); }
  /// Internal: checks a state, and returns what takes it over.
  std::function<void()> prepare(const Dict& state) {
    return [this, found = order_.from_state(state)] {
      loop_.reset();
      next_ = found;
      epoch_ = found.first;
    };
  }

 private:
  friend class detail::BatchIterator<DataLoader>;

  struct Source {
    std::vector<std::unique_ptr<Dataset>> datasets;  // one for each worker
    Collate collate;
  };

  void advance() {
    if (detail::advance(loop_)) ++taken_;
  }

  DataLoaderOptions options_;
  detail::BatchOrder order_;
  detail::DeviceTransfer transfer_;
  std::unique_ptr<Source> source_;
  std::uint64_t epoch_ = 0;
  std::pair<std::uint64_t, std::size_t> next_ = {0, 0};  // epoch and position at which the next loop begins
  std::int64_t loops_ = 0;
  std::size_t position_ = 0;                        // at which the present loop began
  std::size_t taken_ = 0;                           // batches of the present loop that were given out
  std::unique_ptr<detail::BatchLoop<Batch>> loop_;  // nullptr outside loops
};

/// Returns a loader of this rank's share of a dataset, in batches, on the worker's device. The dataset is a stateless
/// one of torch::data with a size, such as TensorDataset, MNIST and the result of its map(), or one of transform(). It,
/// or a copy, is used in one thread at a time, which is not the caller's if there is a worker; `collate` makes a batch
/// of what the dataset's get_batch returns, and of a cadre::Random if it takes one, in several threads at once if there
/// are several workers. With Remainder::keep the ranks may have different numbers of batches, which does not suit the
/// training of a prepared model.
///
///     auto loader = train::prepare_data_loader(dataset, {.batch_size = 128, .shuffle = true, .num_workers = 4});
///     for (int epoch = 0; epoch < 10; ++epoch) {
///       for (auto& batch : loader) train_on(batch.data, batch.target);
///     }
///
/// Throws InvalidArgument for a dataset without a size or with fewer examples than there are ranks, for one that cannot
/// be copied with several workers, if drop_last would drop every batch, and for invalid options.
template <detail::MapStyleDataset Dataset, class Collate = StackExamples>
DataLoader<Dataset, Collate> prepare_data_loader(Dataset dataset, const DataLoaderOptions& options = {},
                                                 Collate collate = {}) {
  return DataLoader<Dataset, Collate>(std::move(dataset), options, std::move(collate));
}

/// A loader of torch::data whose batches a thread moves to the worker's device; made by prepare_data_loader.
template <class Loader>
class PreparedLoader {
 public:
  using Batch = detail::BatchOfLoader<Loader>;             ///< the loader's batch
  using Iterator = detail::BatchIterator<PreparedLoader>;  ///< as that of a DataLoader

  /// Makes a loader: see prepare_data_loader.
  explicit PreparedLoader(std::unique_ptr<Loader> loader)
      : loader_(std::move(loader)), transfer_(DataLoaderOptions()) {}
  PreparedLoader(PreparedLoader&&) = default;  ///< must not be called during a loop

  /// Starts a loop over the loader. Throws its exceptions.
  Iterator begin() {
    loop_.reset();
    ++loops_;
    loop_ = std::make_unique<detail::BatchLoop<Batch>>(
        [loader = loader_.get(), position = std::make_shared<std::optional<Position>>()](
            std::size_t, std::size_t) -> std::optional<Batch> {
          if (*position) {
            ++**position;
          } else {
            *position = loader->begin();
          }
          if (**position == loader->end()) return std::nullopt;
          return std::move(***position);
        },
        DataLoaderOptions(), transfer_);
    advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }  ///< returns the end of every loop
  Loader& loader() const { return *loader_; }         ///< returns the loader itself

 private:
  friend class detail::BatchIterator<PreparedLoader>;
  using Position = decltype(std::declval<Loader&>().begin());

  void advance() { detail::advance(loop_); }

  std::unique_ptr<Loader> loader_;
  detail::DeviceTransfer transfer_;
  std::int64_t loops_ = 0;
  std::unique_ptr<detail::BatchLoop<Batch>> loop_;  // nullptr outside loops
};

/// Returns the program's own loader, as torch::data::make_data_loader makes it, with its batches on the worker's
/// device; a thread asks for the next one while the present one is used. Give it a DistributedSampler, so that each
/// rank has its share.
template <class Loader>
  requires requires(Loader& loader) { loader.begin() == loader.end(); }
PreparedLoader<Loader> prepare_data_loader(std::unique_ptr<Loader> loader) {
  return PreparedLoader<Loader>(std::move(loader));
}

}  // namespace cadre::train
