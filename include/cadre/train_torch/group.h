/// \file
/// This worker's device, and collective operations of all ranks on tensors.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace c10d {
class ProcessGroup;
}

namespace cadre::train {

/// Returns the device that this worker computes on: the first of its GPUs, or the CPU if it has none.
torch::Device get_device();

/// Returns libtorch's process group of the ranks, for collective operations that are not here; include
/// <torch/csrc/distributed/c10d/ProcessGroup.hpp> to use it. nullptr in a world of one. Valid until the training
/// function returns.
c10d::ProcessGroup* process_group();

/// The operation by which all_reduce and reduce_scatter combine the values of all ranks.
enum class ReduceOp {
  sum,      ///< their sum; of truth values, true where one is
  mean,     ///< their sum divided by the world size; floating-point and complex tensors only
  min,      ///< the smallest
  max,      ///< the largest
  product,  ///< their product
};

/// Combines the ranks' tensors, value by value, and stores the result in all of them, with the same bits on every rank.
/// Collective: shapes and types must be equal on all ranks. No gradient flows through it. Throws InvalidArgument for a
/// tensor that is undefined or does not suit the operation (types of numbers that backends do not combine, such as
/// kShort; complex ones have a sum and a mean only), and, on all ranks, if these call different operations or their
/// tensors differ in shape or type (TorchConfig::check_collectives): then no tensor has changed, and the group can be
/// used. Throws EngineError if another rank has ended; after that error every further operation of the group throws it
/// again, at once.
void all_reduce(torch::Tensor& tensor, ReduceOp op = ReduceOp::sum);

/// Copies the tensor of one rank into those of all others. Collective: shapes and types must be equal on all ranks; any
/// type may be copied, here and below. Throws InvalidArgument for a tensor that is undefined or a rank that does not
/// exist, and otherwise as all_reduce.
void broadcast(torch::Tensor& tensor, int from_rank = 0);

/// Returns the tensors of all ranks, by rank. Collective: shapes and types must be equal on all ranks. Throws
/// InvalidArgument for a tensor that is undefined, and otherwise as all_reduce.
std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor);

/// Combines the ranks' tensors, value by value, and gives each rank its part of the result: of the rows (the first
/// dimension), the first world_size-th to rank 0, and so on. Collective: shapes and types must be equal on all ranks.
/// No gradient flows through it. Throws InvalidArgument for a tensor whose rows cannot be divided, or that all_reduce
/// would refuse; EngineError as all_reduce.
torch::Tensor reduce_scatter(const torch::Tensor& tensor, ReduceOp op = ReduceOp::sum);

/// Returns the tensors of all ranks, by rank, on one of them, and nothing on the others. Collective, with the errors of
/// broadcast.
std::vector<torch::Tensor> gather(const torch::Tensor& tensor, int to_rank = 0);

/// Sends a tensor to another rank, which calls recv; returns when it has been taken over for that. Messages between two
/// ranks with one tag come in order. Throws InvalidArgument for a tensor that is undefined, a rank that does not exist,
/// and this one itself; EngineError if the other rank has ended, and after any error as all_reduce.
void send(const torch::Tensor& tensor, int to_rank, int tag = 0);
/// Receives a tensor of the same shape and type as `tensor` into it. Throws like send, and InvalidArgument if the
/// tensor that comes has another shape or type (TorchConfig::check_collectives): then `tensor` has not changed, the one
/// that came is dropped, and the group can be used.
void recv(torch::Tensor& tensor, int from_rank, int tag = 0);

namespace detail {
// Links libtorch's process groups, under the name "torch", into a program that refers to this function.
void use_torch_backend();
}  // namespace detail

}  // namespace cadre::train
