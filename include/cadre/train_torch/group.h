/// \file
/// This worker's device, and operations of all ranks together on tensors.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace c10d {
class ProcessGroup;
}

namespace cadre::train {

/// The device that this worker computes on: the first of its GPUs, or the CPU where it has none.
torch::Device get_device();

/// libtorch's own group of these processes, for collective operations that are not here; include
/// <torch/csrc/distributed/c10d/ProcessGroup.hpp> to use it. nullptr in a world of one. Good until the training
/// function returns.
c10d::ProcessGroup* process_group();

/// How all_reduce makes one value out of those of all ranks.
enum class ReduceOp {
  sum,      ///< their sum
  mean,     ///< their sum divided by the world size; of floating-point tensors only
  min,      ///< the smallest
  max,      ///< the largest
  product,  ///< their product
};

/// Combines the ranks' tensors, value by value, and leaves the result in all of them, the same bits on every rank.
/// Collective: shapes and types are the same everywhere. No gradient flows through it. Throws InvalidArgument for a
/// tensor that is undefined or does not suit the operation, EngineError when another rank is gone; after that error
/// every further operation of the group throws it again, at once.
void all_reduce(torch::Tensor& tensor, ReduceOp op = ReduceOp::sum);

/// Copies the tensor of one rank into those of all others. Collective: shapes and types are the same everywhere. Throws
/// InvalidArgument for a tensor that is undefined or a rank that there is not, EngineError when another rank is gone.
void broadcast(torch::Tensor& tensor, int from_rank = 0);

/// The tensors of all ranks, by rank. Collective: shapes and types are the same everywhere. Throws InvalidArgument for
/// a tensor that is undefined, EngineError when another rank is gone.
std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor);

namespace detail {
// Linked into a program that refers to it: libtorch's process groups under the name "torch".
void use_torch_backend();
}  // namespace detail

}  // namespace cadre::train
