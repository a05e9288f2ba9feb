/// \file
/// Datasets as tensors.
///
///     for (data::TensorBatch& batch : data::iter_torch_batches(dataset, {.batch_size = 128})) {
///       const torch::Tensor output = model->forward(batch.at("image").to(torch::kFloat) / 255);
///       ...
///     }
///
/// A tensor of a column lies where the column does: nothing is copied, and what is written to it is written to the
/// batch.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/data.h"

namespace cadre::data {

/// The columns of a batch by their names.
using TensorBatch = std::map<std::string, torch::Tensor>;

/// A column of numbers or truth values as a tensor of shape {rows, row_shape...} on the CPU, which keeps the batch: it
/// shares its memory, but for truth values, which Arrow packs. Fixed-size binary is bytes. Of unsigned numbers only
/// uint8 has a type in every version of libtorch; others become int64, copied. Throws InvalidArgument, with the column,
/// for nulls, texts and lists of different lengths, and for numbers that do not fit.
torch::Tensor to_tensor(const Batch& batch, std::string_view column);
/// All columns.
TensorBatch to_tensors(const Batch& batch);

/// A tensor of numbers or truth values as a column, whose rows are its first dimension. It shares the memory of a
/// contiguous one on the CPU. Throws InvalidArgument for a tensor without dimensions and for types that Arrow does not
/// have as numbers.
Column to_column(const torch::Tensor& tensor);

/// Rows in memory: columns of the same length, which are not copied where they are contiguous and on the CPU. Throws
/// InvalidArgument for what to_column refuses, with the name, and for different lengths.
Dataset from_tensors(const std::vector<std::pair<std::string, torch::Tensor>>& columns);

/// How batches become tensors.
struct TorchBatchesOptions {
  std::int64_t batch_size = 256;      ///< rows in a batch, above 0; only the last one may have fewer
  bool drop_last = false;             ///< leaves out the last batch where it has fewer rows
  std::int64_t prefetch_batches = 1;  ///< that a thread makes ahead; 0: made when asked for, by the caller
  std::optional<std::int64_t> local_shuffle_buffer_size = {};  ///< see IterBatchesOptions
  std::uint64_t local_shuffle_seed = 0;                        ///< see IterBatchesOptions
  std::map<std::string, torch::ScalarType> dtypes = {};        ///< by column; default: as in the batch
  std::optional<torch::Device> device = {};  ///< where tensors are to lie; default: train::get_device()
};

/// Batches as tensors, in the order of the rows. Each loop is an execution of its own, which ends with its iterator.
class TorchBatches {
 public:
  /// Where a loop is. One thread uses it.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< one pass
    using value_type = TensorBatch;                     ///< a batch
    using difference_type = std::ptrdiff_t;             ///< not used
    using reference = TensorBatch&;                     ///< may be changed or moved from; good until the next ++
    using pointer = TensorBatch*;                       ///< the same

    TensorBatch& operator*() { return tensors_; }    ///< the batch
    TensorBatch* operator->() { return &tensors_; }  ///< the batch
    Iterator& operator++();                          ///< the next one; throws what executing throws, and to_tensor
    void operator++(int) { ++*this; }                ///< the same
    /// Whether there is no further batch.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t end) { return iterator.batches_ == end; }

   private:
    friend class TorchBatches;
    Iterator(Batches::Iterator batches, const TorchBatchesOptions& options);
    void convert();

    Batches::Iterator batches_;
    TorchBatchesOptions options_;
    TensorBatch tensors_;
  };

  /// Of batches of the options' size.
  TorchBatches(Batches batches, TorchBatchesOptions options)
      : batches_(std::move(batches)), options_(std::move(options)) {}
  /// Begins an execution. Throws what executing throws (see Dataset), and InvalidArgument for dtypes of columns that
  /// are not there.
  Iterator begin() const { return {batches_.begin(), options_}; }
  std::default_sentinel_t end() const { return {}; }  ///< where every loop ends

 private:
  Batches batches_;
  TorchBatchesOptions options_;
};

/// Batches of a dataset. Throws InvalidArgument for bad options.
TorchBatches iter_torch_batches(const Dataset& dataset, const TorchBatchesOptions& options = {});
/// This rank's batches of an epoch, from the shard's position on.
TorchBatches iter_torch_batches(const Shard& shard, const TorchBatchesOptions& options = {});

}  // namespace cadre::data
