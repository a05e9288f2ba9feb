/// \file
/// Loops over the batches of a dataset, and the share of a rank in it.
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

/// How a dataset is cut into batches.
struct IterBatchesOptions {
  /// Rows in a batch, above 0; only the last one may have fewer. Empty: as they are read.
  std::optional<std::int64_t> batch_size = 256;
  bool drop_last = false;             ///< leaves out the last batch where it has fewer rows
  std::int64_t prefetch_batches = 1;  ///< that a thread makes ahead; 0: made when asked for, by the caller
  /// Rows that are mixed with each other; above 0. Each so many rows that follow each other come in random order.
  /// Default: nothing is mixed. Those rows are held in memory beside ExecutionOptions::memory_limit_bytes.
  std::optional<std::int64_t> local_shuffle_buffer_size = {};
  /// For that. The order depends on it and on the epoch.
  std::uint64_t local_shuffle_seed = 0;
};

/// Batches of a dataset or of a shard. Each loop is an execution of its own, which ends with its iterator.
class Batches {
 public:
  /// Where a loop is. One thread uses it.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< one pass
    using value_type = Batch;                           ///< a batch
    using difference_type = std::ptrdiff_t;             ///< not used
    using reference = const Batch&;                     ///< good until the next ++
    using pointer = const Batch*;                       ///< good until the next ++

    const Batch& operator*() const;                      ///< the batch
    const Batch* operator->() const { return &**this; }  ///< the batch
    Iterator& operator++();                              ///< the next one; throws what executing throws
    void operator++(int) { ++*this; }                    ///< the same
    /// Whether there is no further batch.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.is_over(); }

   private:
    friend class Batches;
    struct State;
    explicit Iterator(std::shared_ptr<State> state) : state_(std::move(state)) {}
    bool is_over() const;

    std::shared_ptr<State> state_;
  };

  /// Begins an execution. Throws what executing throws (see Dataset).
  Iterator begin() const;
  std::default_sentinel_t end() const { return {}; }  ///< where every loop ends

 private:
  friend class Dataset;
  friend class Shard;
  struct Recipe;
  explicit Batches(std::shared_ptr<const Recipe> recipe) : recipe_(std::move(recipe)) {}

  std::shared_ptr<const Recipe> recipe_;
};

/// Which share of a dataset is whose.
struct ShardOptions {
  std::int64_t rank = 0;        ///< 0 to world_size - 1
  std::int64_t world_size = 1;  ///< above 0
  /// All ranks have as many rows, as training wants it, which waits for all ranks in each step: the last rows of an
  /// epoch, fewer than world_size, are left out. Otherwise every row is in exactly one share, as an evaluation wants
  /// it.
  bool equal = false;
  /// Another order of row groups in each epoch, the same on all ranks before they share them. For rows that are to be
  /// mixed beyond that there is IterBatchesOptions::local_shuffle_buffer_size.
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< for shuffle, the same on all ranks
};

/// The rows of a dataset that are one rank's. What each rank reads follows from the options, the epoch and the metadata
/// of the files, so that ranks share a dataset without a word between them: in the epoch's order of row groups each
/// rank has rows that follow each other, and no two ranks the same.
///
/// Rows are shared as they are read, before functions and conditions, which then run in each rank on its own rows. A
/// dataset with a limit, a skip or a random_shuffle behind a function or condition cannot be shared; one that is
/// materialized can. Of CSV and JSON files each rank counts the rows first, by reading them.
///
/// Loops go on where the position says, and move it: a shard that is given the position() of another one goes on behind
/// the last batch that was taken there. Used in one thread, and one loop at a time.
class Shard {
 public:
  /// This many rows are this rank's in the epoch, before functions and conditions. Throws what executing throws.
  std::int64_t size() const;

  /// Begins an epoch at its beginning. The first is 0. A loop that ends begins none: without this the next loop is the
  /// same epoch again, from its beginning.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;  ///< see set_epoch

  /// Where the loop is: a value for a checkpoint, to be given to set_position. Ranks that train in step may all be
  /// given that of rank 0.
  Value position() const;
  /// Goes on there: the next loop begins with the row behind the last batch that was taken. With the options that it
  /// was saved with the same rows come in the same order as without the interruption. With another number of ranks the
  /// rows that no rank had are shared anew; every rank must have taken as many as the one that has saved the position,
  /// and the dataset may have no function or condition, or it throws InvalidArgument. It throws that too for what is no
  /// position, and for one of another dataset.
  void set_position(const Value& position);

  /// This rank's batches of the epoch, from the position on.
  Batches iter_batches(const IterBatchesOptions& options = {}) const;

 private:
  friend class Batches;
  friend class detail::PlanAccess;
  struct State;
  explicit Shard(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace cadre::data
