// Batch normalisation over the batches of all ranks, in modules that know nothing of it.
//
// torch::nn::BatchNorm calls libtorch's operation batch_norm, in place of which another one is called in a scope, by a
// dispatch key that the scope sets for its thread.
#pragma once

#include <torch/torch.h>

namespace cadre::distributed {

// While it lives, operations of this thread that normalise a batch in training use the mean and variance of all ranks'.
// Collective then. Source: torch.nn.SyncBatchNorm.
class SyncBatchNormScope {
 public:
  SyncBatchNormScope();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace cadre::distributed
