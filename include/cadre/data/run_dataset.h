/// \file
/// The datasets of a training run, in its workers.
///
///     train::TorchTrainer trainer(fn<learn>, {.datasets = {{"train", data::read_parquet("images")}}});
///
///     void learn(const Config&) {
///       data::Shard shard = data::get_dataset_shard("train", {.equal = true, .shuffle = true});
///       for (std::uint64_t epoch = shard.epoch(); epoch < 10; ++epoch) {
///         if (epoch != shard.epoch()) shard.set_epoch(epoch);
///         for (data::TensorBatch& batch : data::iter_torch_batches(shard, {.batch_size = 128})) ...
///       }
///     }
#pragma once

#include <cstdint>
#include <string>

#include "cadre/data/iterate.h"

namespace cadre::data {

/// Options of a rank's share of a run's dataset; see ShardOptions.
struct DatasetShardOptions {
  bool equal = false;      ///< true: all ranks get equally many rows, for training; false: every row is in one share
  bool shuffle = false;    ///< a different order in each epoch
  std::uint64_t seed = 0;  ///< seed for shuffle
};

/// Returns this rank's share of a dataset in TrainerOptions::datasets. Its position is stored with each checkpoint that
/// a rank reports, so that training which continues from the checkpoint continues after the last batch that was taken
/// before it: the shard is then in that epoch, at that row. All ranks must take equally many batches; all continue at
/// the position of the lowest rank that had a part of the checkpoint, even if their number has changed. Call it in the
/// thread that reports. Throws NotFound for a name that the run does not have, Error outside a worker of a run, and the
/// errors of Dataset::shard and Shard::set_position.
///
/// Source: ray.train.get_dataset_shard. Unlike there, no rank waits for another one.
Shard get_dataset_shard(const std::string& name, const DatasetShardOptions& options = {});

}  // namespace cadre::data
