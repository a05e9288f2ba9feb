#include "torch/distributed/collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "cadre/train_torch/group.h"

namespace cadre {
namespace {

using distributed::Group;

void check_defined(std::string_view operation, const torch::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument(std::string(operation) + ": the tensor is undefined");
}

void check_rank(std::string_view operation, const Group& group, int rank) {
  if (rank >= 0 && rank < group.world_size) return;
  throw InvalidArgument(std::string(operation) + ": there is no rank " + std::to_string(rank) + " in a world of " +
                        std::to_string(group.world_size));
}

void check_other_rank(std::string_view operation, const Group& group, int rank) {
  check_rank(operation, group, rank);
  if (rank != group.rank) return;
  throw InvalidArgument(std::string(operation) + ": rank " + std::to_string(rank) + " is this one itself");
}

void check_reduction(std::string_view operation, const torch::Tensor& tensor, train::ReduceOp op) {
  check_defined(operation, tensor);
  if (op != train::ReduceOp::mean || tensor.is_floating_point() || tensor.is_complex()) return;
  throw InvalidArgument(std::string(operation) + ": the mean of " + std::string(c10::toString(tensor.scalar_type())) +
                        " tensors is not one; convert the tensor first");
}

c10d::ReduceOp::RedOpType backend_op(train::ReduceOp op) {
  switch (op) {
    case train::ReduceOp::sum:
    case train::ReduceOp::mean:
      return c10d::ReduceOp::SUM;
    case train::ReduceOp::min:
      return c10d::ReduceOp::MIN;
    case train::ReduceOp::max:
      return c10d::ReduceOp::MAX;
    case train::ReduceOp::product:
      return c10d::ReduceOp::PRODUCT;
  }
  throw InvalidArgument("there is no such operation of all_reduce");
}

// Calls operate(tensor) with a contiguous tensor without gradients, as backends require: one that shares the memory,
// or a copy whose values are copied back.
template <class Operation>
void in_place(torch::Tensor& tensor, Operation operation) {
  const torch::NoGradGuard no_gradients;
  torch::Tensor target = tensor.detach();
  torch::Tensor work = target.contiguous();
  operation(work);
  if (work.data_ptr() != target.data_ptr()) target.copy_(work);
}

std::vector<torch::Tensor> gather_on_all(const Group& group, const torch::Tensor& tensor) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> input{tensor.detach().contiguous()};
  if (!group.process_group) return {input[0].clone()};
  std::vector<std::vector<torch::Tensor>> output(1);
  for (int rank = 0; rank < group.world_size; ++rank) output[0].push_back(torch::empty_like(input[0]));
  distributed::run_collective(group, "all_gather", [&] { group.process_group->allgather(output, input)->wait(); });
  return std::move(output[0]);
}

}  // namespace

std::vector<std::string> distributed::all_gather_text(const Group& group, const std::string& text) {
  const std::vector<torch::Tensor> sizes = gather_on_all(group, torch::tensor(static_cast<std::int64_t>(text.size())));
  std::int64_t longest = 0;
  for (const torch::Tensor& size : sizes) longest = std::max(longest, size.item<std::int64_t>());
  torch::Tensor bytes = torch::zeros({longest}, torch::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const torch::Tensor& gathered : gather_on_all(group, bytes)) {
    const auto size = static_cast<std::size_t>(sizes[texts.size()].item<std::int64_t>());
    texts.emplace_back(static_cast<const char*>(gathered.const_data_ptr()), size);
  }
  return texts;
}

namespace train {

torch::Device get_device() { return distributed::current_group().device; }

c10d::ProcessGroup* process_group() { return distributed::current_group().process_group.get(); }

void all_reduce(torch::Tensor& tensor, ReduceOp op) {
  check_reduction("all_reduce", tensor, op);
  const Group group = distributed::current_group();
  if (!group.process_group) return;
  in_place(tensor, [&](torch::Tensor& values) {
    std::vector<torch::Tensor> tensors{values};
    c10d::AllreduceOptions options;
    options.reduceOp = backend_op(op);
    distributed::run_collective(group, "all_reduce", [&] { group.process_group->allreduce(tensors, options)->wait(); });
    if (op == ReduceOp::mean) values.div_(group.world_size);
  });
}

void broadcast(torch::Tensor& tensor, int from_rank) {
  check_defined("broadcast", tensor);
  const Group group = distributed::current_group();
  check_rank("broadcast", group, from_rank);
  if (!group.process_group) return;
  in_place(tensor, [&](torch::Tensor& values) {
    std::vector<torch::Tensor> tensors{values};
    c10d::BroadcastOptions options;
    options.rootRank = from_rank;
    distributed::run_collective(group, "broadcast", [&] { group.process_group->broadcast(tensors, options)->wait(); });
  });
}

std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) {
  check_defined("all_gather", tensor);
  return gather_on_all(distributed::current_group(), tensor);
}

torch::Tensor reduce_scatter(const torch::Tensor& tensor, ReduceOp op) {
  check_reduction("reduce_scatter", tensor, op);
  const Group group = distributed::current_group();
  if (tensor.dim() == 0 || tensor.size(0) % group.world_size != 0) {
    throw InvalidArgument("reduce_scatter: a tensor of the shape " + c10::str(tensor.sizes()) + " for " +
                          std::to_string(group.world_size) + " ranks, which must get equally many rows");
  }
  const torch::NoGradGuard no_gradients;
  torch::Tensor whole = tensor.detach().contiguous();
  if (!group.process_group) return whole.clone();
  torch::Tensor own = torch::empty_like(whole.narrow(0, 0, whole.size(0) / group.world_size));
  c10d::ReduceScatterOptions options;
  options.reduceOp = backend_op(op);
  distributed::run_collective(group, "reduce_scatter",
                              [&] { group.process_group->_reduce_scatter_base(own, whole, options)->wait(); });
  if (op == ReduceOp::mean) own.div_(group.world_size);
  return own;
}

std::vector<torch::Tensor> gather(const torch::Tensor& tensor, int to_rank) {
  check_defined("gather", tensor);
  const Group group = distributed::current_group();
  check_rank("gather", group, to_rank);
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> input{tensor.detach().contiguous()};
  if (!group.process_group) return {input[0].clone()};
  std::vector<std::vector<torch::Tensor>> output;
  if (group.rank == to_rank) {
    output.emplace_back();
    for (int rank = 0; rank < group.world_size; ++rank) output[0].push_back(torch::empty_like(input[0]));
  }
  c10d::GatherOptions options;
  options.rootRank = to_rank;
  distributed::run_collective(group, "gather", [&] { group.process_group->gather(output, input, options)->wait(); });
  return output.empty() ? std::vector<torch::Tensor>() : std::move(output[0]);
}

void send(const torch::Tensor& tensor, int to_rank, int tag) {
  check_defined("send", tensor);
  const Group group = distributed::current_group();
  check_other_rank("send", group, to_rank);
  std::vector<torch::Tensor> tensors{tensor.detach().contiguous()};
  distributed::run_collective(group, "send", [&] { group.process_group->send(tensors, to_rank, tag)->wait(); });
}

void recv(torch::Tensor& tensor, int from_rank, int tag) {
  check_defined("recv", tensor);
  const Group group = distributed::current_group();
  check_other_rank("recv", group, from_rank);
  in_place(tensor, [&](torch::Tensor& values) {
    std::vector<torch::Tensor> tensors{values};
    distributed::run_collective(group, "recv", [&] { group.process_group->recv(tensors, from_rank, tag)->wait(); });
  });
}

}  // namespace train
}  // namespace cadre
