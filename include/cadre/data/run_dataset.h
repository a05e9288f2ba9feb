/// \file
/// The datasets of a training run, in its workers.
///
///     train::TorchTrainer trainer(train::loop<learn>(), {.datasets = {{"train", data::read_parquet("images")}}});
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

/// Which rows of a run's dataset a rank gets; see ShardOptions.
struct DatasetShardOptions {
  bool equal = false;      ///< all ranks have as many rows, as training wants it; else every row is in one share
  bool shuffle = false;    ///< another order in each epoch
  std::uint64_t seed = 0;  ///< for shuffle
};

/// This rank's share of a dataset of TrainerOptions::datasets. Its position goes with each checkpoint that a rank
/// reports, so that training which goes on from the checkpoint goes on behind the last batch that was taken before it:
/// the shard is then in that epoch, at that row. Ranks take as many batches as each other; where the lowest rank that
/// had a part of the checkpoint was, all of them go on, also when they are more or fewer than before. In the thread
/// that reports. Throws NotFound for a name that the run does not have, Error outside a worker of a run, and what
/// Dataset::shard and Shard::set_position throw.
///
/// Source: ray.train.get_dataset_shard. No rank waits for another one here.
Shard get_dataset_shard(const std::string& name, const DatasetShardOptions& options = {});

}  // namespace cadre::data
