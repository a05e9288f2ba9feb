/// \file
/// Datasets as tensors.
///
///     for (data::TensorBatch& batch : data::iter_torch_batches(dataset, {.batch_size = 128})) {
///       const torch::Tensor output = model->forward(batch.at("image").to(torch::kFloat) / 255);
///       ...
///     }
///
/// A tensor of a column shares the column's memory: nothing is copied, and a write to the tensor changes the batch.
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

/// The columns of a batch by name.
using TensorBatch = std::map<std::string, torch::Tensor>;

/// Returns a column of numbers or truth values as a tensor of shape {rows, row_shape...} on the CPU, which keeps the
/// batch alive. It shares the column's memory, except for truth values, which Arrow packs. Fixed-size binary becomes
/// bytes. uint8 is the only unsigned type in every version of libtorch; other unsigned numbers are copied to int64.
/// Throws InvalidArgument, with the column, for nulls, texts and lists of different lengths, and for numbers that do
/// not fit.
torch::Tensor to_tensor(const Batch& batch, std::string_view column);
/// Returns all columns as tensors.
TensorBatch to_tensors(const Batch& batch);

/// Returns a tensor of numbers or truth values as a column, whose rows are the first dimension. It shares the tensor's
/// memory if that is contiguous and on the CPU. Throws InvalidArgument for a tensor without dimensions and for types
/// that are not numbers in Arrow.
Column to_column(const torch::Tensor& tensor);

/// Returns a dataset of columns in memory, all of the same length; tensors that are contiguous and on the CPU are not
/// copied. Throws InvalidArgument, with the column's name, for tensors that to_column refuses, and for different
/// lengths.
Dataset from_tensors(const std::vector<std::pair<std::string, torch::Tensor>>& columns);

/// Options of batches as tensors.
struct TorchBatchesOptions {
  std::int64_t batch_size = 256;      ///< rows in a batch, above 0; only the last one may have fewer
  bool drop_last = false;             ///< drop the last batch if it has fewer rows
  std::int64_t prefetch_batches = 1;  ///< batches that a thread prepares ahead; 0: prepared on demand, by the caller
  std::optional<std::int64_t> local_shuffle_buffer_size = {};  ///< see IterBatchesOptions
  std::uint64_t local_shuffle_seed = 0;                        ///< see IterBatchesOptions
  std::uint64_t epoch = 0;                                     ///< see IterBatchesOptions
  std::map<std::string, torch::ScalarType> dtypes = {};        ///< by column; default: as in the batch
  std::optional<torch::Device> device = {};                    ///< device of the tensors; default: train::get_device()
};

/// Batches as tensors, in the order of the rows. Each loop is a separate execution, which ends with its iterator.
class TorchBatches {
 public:
  /// The position of a loop. Used in one thread.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  ///< one pass
    using value_type = TensorBatch;                     ///< a batch
    using difference_type = std::ptrdiff_t;             ///< not used
    using reference = TensorBatch&;                     ///< may be changed or moved from; valid until the next ++
    using pointer = TensorBatch*;                       ///< as reference

    TensorBatch& operator*() { return tensors_; }    ///< returns the batch
    TensorBatch* operator->() { return &tensors_; }  ///< returns the batch
    Iterator& operator++();            ///< advances to the next batch; throws errors of the execution and of to_tensor
    void operator++(int) { ++*this; }  ///< advances to the next batch
    /// Returns true if there is no further batch.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t end) { return iterator.batches_ == end; }

   private:
    friend class TorchBatches;
    Iterator(Batches::Iterator batches, const TorchBatchesOptions& options);
    void convert();

    Batches::Iterator batches_;
    TorchBatchesOptions options_;
    TensorBatch tensors_;
  };

  /// Makes tensors from batches of the options' size.
  TorchBatches(Batches batches, TorchBatchesOptions options)
      : batches_(std::move(batches)), options_(std::move(options)) {}
  /// Starts an execution. Throws errors of the execution (see Dataset), and InvalidArgument for dtypes of unknown
  /// columns.
  Iterator begin() const { return {batches_.begin(), options_}; }
  std::default_sentinel_t end() const { return {}; }  ///< returns the end of every loop

 private:
  Batches batches_;
  TorchBatchesOptions options_;
};

/// Returns the batches of a dataset as tensors. Throws InvalidArgument for invalid options.
TorchBatches iter_torch_batches(const Dataset& dataset, const TorchBatchesOptions& options = {});
/// Returns this rank's batches of an epoch as tensors, from the shard's position on.
TorchBatches iter_torch_batches(const Shard& shard, const TorchBatchesOptions& options = {});

}  // namespace cadre::data
