/// \file
/// Loops over the batches of a dataset, and a rank's share of it.
///
///     for (const data::Batch& batch : dataset.iter_batches({.batch_size = 128})) ...
///
///     data::Shard shard = dataset.shard({.rank = 0, .world_size = 2, .shuffle = true});
///     for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
///       shard.set_epoch(epoch);
///       for (const data::Batch& batch : shard.iter_batches({.batch_size = 128})) ...
///     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

#include "cadre/data/batch.h"
#include "cadre/value.h"

namespace cadre::data {

class Dataset;
namespace detail {
class PlanAccess;
}  // namespace detail

/// Options of batches.
struct IterBatchesOptions {
  /// Rows in a batch, above 0; only the last one may have fewer. Empty: batches as they are read.
  std::optional<std::int64_t> batch_size = 256;
  bool drop_last = false;             ///< drop the last batch if it has fewer rows
  std::int64_t prefetch_batches = 1;  ///< batches that a thread prepares ahead; 0: prepared on demand, by the caller
  /// Number of rows that are shuffled among each other, above 0: every group of so many consecutive rows is put in
  /// random order. Default: no shuffling. These rows are held in memory in addition to
  /// ExecutionOptions::memory_limit_bytes.
  std::optional<std::int64_t> local_shuffle_buffer_size = {};
  /// Seed for the shuffling. The order depends on it and on the epoch.
  std::uint64_t local_shuffle_seed = 0;
  /// Epoch of a loop over a Dataset, for its functions (CallContext) and the shuffling. A Shard has its own, and this
  /// must be 0 there.
  std::uint64_t epoch = 0;
};

/// The batches of a dataset or of a shard. Each loop is a separate execution, which ends with its iterator.
class Batches {
 public:
  /// The position of a loop. Used in one thread.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< one pass
    using value_type = Batch;                           ///< a batch
    using difference_type = std::ptrdiff_t;             ///< not used
    using reference = const Batch&;                     ///< valid until the next ++
    using pointer = const Batch*;                       ///< valid until the next ++

    const Batch& operator*() const;                      ///< returns the batch
    const Batch* operator->() const { return &**this; }  ///< returns the batch
    Iterator& operator++();                              ///< advances to the next batch; throws errors of the execution
    void operator++(int) { ++*this; }                    ///< advances to the next batch
    /// Returns true if there is no further batch.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.is_over(); }

   private:
    friend class Batches;
    struct State;
    explicit Iterator(std::shared_ptr<State> state) : state_(std::move(state)) {}
    bool is_over() const;

    std::shared_ptr<State> state_;
  };

  /// Starts an execution. Throws errors of the execution (see Dataset).
  Iterator begin() const;
  std::default_sentinel_t end() const { return {}; }  ///< returns the end of every loop

 private:
  friend class Dataset;
  friend class Shard;
  struct Recipe;
  explicit Batches(std::shared_ptr<const Recipe> recipe) : recipe_(std::move(recipe)) {}

  std::shared_ptr<const Recipe> recipe_;
};

/// Options of a rank's share of a dataset.
struct ShardOptions {
  std::int64_t rank = 0;        ///< 0 to world_size - 1
  std::int64_t world_size = 1;  ///< above 0
  /// If true, all ranks get equally many rows, as needed for training, which waits for all ranks in each step: the last
  /// rows of an epoch, fewer than world_size, are left out. Otherwise every row is in exactly one share, as needed for
  /// evaluations.
  bool equal = false;
  /// If true, row groups are in a different order in each epoch, equal on all ranks before they divide them. For
  /// further shuffling of rows see IterBatchesOptions::local_shuffle_buffer_size.
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< seed for shuffle, equal on all ranks
};

/// One rank's rows of a dataset. Each rank derives its rows from the options, the epoch and the metadata of the files,
/// so that ranks divide a dataset without communication: each rank gets consecutive rows in the epoch's order of row
/// groups, and no two ranks get the same row.
///
/// Rows are divided as they are read, before functions and conditions, which then run in each rank on its own rows. A
/// dataset with a limit, a skip or a random_shuffle after a function or condition cannot be divided; one that is
/// materialized can. For CSV and JSON files each rank first counts the rows, by reading them.
///
/// Loops start at the position and advance it: a shard that is given the position() of another one continues after the
/// last batch that was taken there. Used in one thread, and in one loop at a time.
class Shard {
 public:
  /// Returns the number of this rank's rows in the epoch, before functions and conditions. Throws errors of the
  /// execution.
  std::int64_t size() const;

  /// Starts an epoch at its beginning. The first is 0. The end of a loop does not start a new epoch: without this call
  /// the next loop repeats the same epoch, from its beginning.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;  ///< returns the epoch; see set_epoch

  /// Returns the position of the loop: a value for a checkpoint, to be passed to set_position. Ranks that train in step
  /// may all be given that of rank 0.
  Value position() const;
  /// Continues at a position: the next loop begins with the row after the last batch that was taken. With the options
  /// that it was saved with, the same rows come in the same order as without the interruption. With another number of
  /// ranks, the rows that no rank has taken are divided anew; every rank must have taken as many rows as the rank that
  /// saved the position, and the dataset must have no function or condition, otherwise it throws InvalidArgument. Also
  /// throws InvalidArgument for a value that is not a position, and for the position of another dataset.
  void set_position(const Value& position);

  /// Returns this rank's batches of the epoch, from the position on.
  Batches iter_batches(const IterBatchesOptions& options = {}) const;

 private:
  friend class Batches;
  friend class detail::PlanAccess;
  struct State;
  explicit Shard(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace cadre::data
