/// \file
/// Training runs whose workers form a process group of libtorch.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "cadre/train.h"

namespace cadre::train {

/// How the workers of a TorchTrainer are connected.
struct TorchConfig {
  /// "gloo" or "nccl". Default: nccl where workers have GPUs and this build has it, otherwise gloo.
  std::string backend = {};
  /// "env" or "tcp", as PyTorch has them. Either way workers meet over Cadre's own connections: no port is open.
  std::string init_method = "env";
  Seconds timeout = std::chrono::minutes(30);  ///< after which a collective operation gives up; above 0
};

/// A Trainer whose workers form a process group before the function runs, so that what cadre/train_torch.h has works
/// across them: prepare_model, prepare_data_loader, all_reduce and the like. A rank that dies ends the operations of
/// the others in milliseconds.
///
///     train::TorchTrainer trainer(train::loop<train_net>(), {.scaling_config = {.num_workers = 2}});
///     const train::Result result = trainer.fit();
class TorchTrainer : public Trainer {
 public:
  /// Throws InvalidArgument with what is wrong with the options: see Trainer; a backend that there is not, nccl where
  /// this build or this machine does not have it, or a timeout that is none.
  TorchTrainer(Loop loop, TrainerOptions options, const TorchConfig& torch_config = {});
  /// Trainer::restore, of a run that a TorchTrainer has begun.
  static Trainer restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});
};

}  // namespace cadre::train
