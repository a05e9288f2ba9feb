/// \file
/// Training runs whose workers form a process group of libtorch.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "cadre/train.h"

namespace cadre::train {

/// The connection of a TorchTrainer's workers.
struct TorchConfig {
  /// "gloo" or "nccl". Default: nccl if this build has it and each worker has a GPU of its own, otherwise gloo.
  std::string backend = {};
  /// "env" or "tcp", as in PyTorch. In both cases workers meet over Cadre's own sockets, without a port; Gloo and NCCL
  /// then open ports of their own, on which tensors pass between the workers (docs/security.md).
  std::string init_method = "env";
  Seconds timeout = std::chrono::minutes(30);  ///< time limit of a collective operation; above 0
  /// Compare what the ranks call before each operation of cadre/train_torch/group.h, and throw InvalidArgument where
  /// operation, shape or type differ. Backends do not: they give wrong values or end the process. Costs a message of 16
  /// bytes between the ranks; training steps of prepared models and optimizers need none. Default: true.
  bool check_collectives = true;
};

/// A Trainer whose workers form a process group before the function runs, so that the functions of cadre/train_torch.h
/// work across them: prepare_model, prepare_data_loader, all_reduce and the like. If a rank dies, the operations of the
/// others fail within milliseconds.
///
///     train::TorchTrainer trainer(fn<train_net>, {.scaling_config = {.num_workers = 2}});
///     const train::Result result = trainer.fit();
class TorchTrainer : public Trainer {
 public:
  /// Checks the options; throws InvalidArgument that names every error: see Trainer; an unknown backend, nccl if this
  /// build or this machine does not have it, or an invalid timeout.
  TorchTrainer(Loop loop, TrainerOptions options, const TorchConfig& torch_config = {});
  /// Does the same as Trainer::restore, for a run of a TorchTrainer.
  static Trainer restore(const std::filesystem::path& directory, const RestoreOptions& restore = {});
};

}  // namespace cadre::train
