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
  throw InvalidArgument("all_reduce: there is no such operation");
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

std::vector<torch::Tensor> gather(const Group& group, const torch::Tensor& tensor) {
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
  const std::vector<torch::Tensor> sizes = gather(group, torch::tensor(static_cast<std::int64_t>(text.size())));
  std::int64_t longest = 0;
  for (const torch::Tensor& size : sizes) longest = std::max(longest, size.item<std::int64_t>());
  torch::Tensor bytes = torch::zeros({longest}, torch::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const torch::Tensor& gathered : gather(group, bytes)) {
    const auto size = static_cast<std::size_t>(sizes[texts.size()].item<std::int64_t>());
    texts.emplace_back(static_cast<const char*>(gathered.const_data_ptr()), size);
  }
  return texts;
}

namespace train {

torch::Device get_device() { return distributed::current_group().device; }

c10d::ProcessGroup* process_group() { return distributed::current_group().process_group.get(); }

void all_reduce(torch::Tensor& tensor, ReduceOp op) {
  check_defined("all_reduce", tensor);
  if (op == ReduceOp::mean && !tensor.is_floating_point() && !tensor.is_complex()) {
    throw InvalidArgument("all_reduce: the mean of " + std::string(c10::toString(tensor.scalar_type())) +
                          " tensors is not one; convert the tensor first");
  }
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
  if (from_rank < 0 || from_rank >= group.world_size) {
    throw InvalidArgument("broadcast: there is no rank " + std::to_string(from_rank) + " in a world of " +
                          std::to_string(group.world_size));
  }
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
  return gather(distributed::current_group(), tensor);
}

}  // namespace train
}  // namespace cadre
