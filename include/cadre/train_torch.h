/// \file
/// Data-parallel training with libtorch: functions for a training function that runs in several processes at once.
///
///     auto model = train::prepare_model(Net());
///     auto loader = train::prepare_data_loader(train::TensorDataset(images, labels), {.batch_size = 128});
///     torch::optim::Adam optimizer(model.parameters());
///     for (auto& batch : loader) {
///       model.zero_grad();
///       torch::nn::functional::cross_entropy(model(batch.data), batch.target).backward();
///       optimizer.step();
///     }
///
/// A process without a group, such as a plain program, is a world of one: everything here works there, and nothing is
/// exchanged.
///
/// Some functions are collective: every rank calls them, in the same order. If another rank has ended, calls that wait
/// for it throw at once; if it stalls, they throw after the group's timeout (TorchConfig). The group is unusable then.
///
/// Threads: everything here belongs to the training function's own thread; a metric or a loader is used in one thread
/// at a time.
#pragma once

namespace cadre {
/// Training one model in many processes.
namespace train {}
}  // namespace cadre

#include "cadre/error.h"
#include "cadre/torch.h"
#include "cadre/train.h"
#include "cadre/train_torch/activation_checkpoint.h"
#include "cadre/train_torch/classification.h"
#include "cadre/train_torch/data_loader.h"
#include "cadre/train_torch/distributed_sampler.h"
#include "cadre/train_torch/fully_shard.h"
#include "cadre/train_torch/group.h"
#include "cadre/train_torch/metric.h"
#include "cadre/train_torch/model.h"
#include "cadre/train_torch/precision.h"
#include "cadre/train_torch/sharded_optimizer.h"
#include "cadre/train_torch/trainer.h"
