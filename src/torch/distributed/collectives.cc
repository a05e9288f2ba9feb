#include "torch/distributed/collectives.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

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

// Types of numbers that Gloo and NCCL know. With another one an operation would fail, and the group with it.
constexpr std::array kTypesOfBackends = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                         at::kByte,  at::kBool,   at::kInt,  at::kLong};

bool is_of_backends(const torch::Tensor& tensor) {
  return std::ranges::find(kTypesOfBackends, tensor.scalar_type()) != kTypesOfBackends.end();
}

void check_reduction(std::string_view operation, const torch::Tensor& tensor, train::ReduceOp op) {
  check_defined(operation, tensor);
  const std::string type = c10::toString(tensor.scalar_type());
  if (op == train::ReduceOp::mean && !tensor.is_floating_point() && !tensor.is_complex())
    throw InvalidArgument(std::string(operation) + ": the mean of " + type +
                          " tensors is not one; convert the tensor first");
  const bool is_sum = op == train::ReduceOp::sum || op == train::ReduceOp::mean;
  if (tensor.is_complex() && !is_sum)
    throw InvalidArgument(std::string(operation) + ": " + type + " tensors have a sum and a mean only");
  if (!tensor.is_complex() && !is_of_backends(tensor))
    throw InvalidArgument(std::string(operation) + ": " + type +
                          " tensors are not combined by the backends; convert the tensor first");
}

c10d::ReduceOp::RedOpType backend_op(train::ReduceOp op, torch::ScalarType type) {
  switch (op) {
    case train::ReduceOp::sum:
    case train::ReduceOp::mean:
      return type == at::kBool ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;  // Gloo would add their bytes
    case train::ReduceOp::min:
      return c10d::ReduceOp::MIN;
    case train::ReduceOp::max:
      return c10d::ReduceOp::MAX;
    case train::ReduceOp::product:
      return c10d::ReduceOp::PRODUCT;
  }
  throw InvalidArgument("there is no such operation of all_reduce");
}

// Returns a tensor's values without gradients, in its memory if they lie there as they are, one behind the other.
torch::Tensor plain_values(const torch::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

// Return the memory of a plain tensor as one of a type that backends move, and as one that they combine.
torch::Tensor as_moved(const torch::Tensor& tensor) {
  return is_of_backends(tensor) ? tensor : tensor.view({-1}).view(at::kByte);
}
torch::Tensor as_combined(const torch::Tensor& tensor) {
  return tensor.is_complex() ? torch::view_as_real(tensor) : tensor;
}

// Calls operate(tensor) with a plain tensor, as backends require: one that shares the memory, or a copy whose values
// are copied back.
template <class Operation>
void in_place(torch::Tensor& tensor, Operation operation) {
  const torch::NoGradGuard no_gradients;
  torch::Tensor target = tensor.detach();
  torch::Tensor work = plain_values(target);
  operation(work);
  if (work.data_ptr() != target.data_ptr()) target.copy_(work);
}

const char* name_of(train::ReduceOp op) {
  switch (op) {
    case train::ReduceOp::sum:
      return "sum";
    case train::ReduceOp::mean:
      return "mean";
    case train::ReduceOp::min:
      return "minimum";
    case train::ReduceOp::max:
      return "maximum";
    case train::ReduceOp::product:
      return "product";
  }
  return "";
}

std::string description_of(torch::ScalarType type, torch::IntArrayRef shape) {
  return std::string(c10::toString(type)) + " of the shape " + c10::str(shape);
}

// Returns "rank 1: ..., ranks 0, 2: ...".
std::string by_rank(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<std::size_t>> ranks;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) ranks[texts[rank]].push_back(rank);
  std::string all;
  for (const auto& [text, those] : ranks) {
    all += (all.empty() ? "" : "; ") + std::string(those.size() == 1 ? "rank " : "ranks ");
    for (const std::size_t rank : those) all += (rank == those.front() ? "" : ", ") + std::to_string(rank);
    all += ": " + text;
  }
  return all;
}

// Throws InvalidArgument on all ranks unless all call the same operation with tensors of one shape and type. Backends
// do not look: they end the process, or give values that nobody sent.
void check_calls(const Group& group, std::string_view operation, const torch::Tensor& tensor,
                 const std::string& detail = {}) {
  if (!group.checks_calls || !group.process_group) return;
  std::string call(operation);
  if (!detail.empty()) call += " (" + detail + ")";
  call += " of " + description_of(tensor.scalar_type(), tensor.sizes());
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>()(call));
  torch::Tensor largest = torch::tensor({hash, ~hash});
  distributed::all_reduce(group, largest, train::ReduceOp::max);
  if (largest[0].item<std::int64_t>() == ~largest[1].item<std::int64_t>()) return;
  throw InvalidArgument(std::string(operation) + " of rank " + std::to_string(group.rank) +
                        ": the ranks do not call the same operation with tensors of one shape and type: " +
                        by_rank(distributed::all_gather_text(group, call)));
}

// Sent before a tensor: its type, its number of dimensions, and its sizes.
constexpr std::int64_t kMostDimensions = 64;
torch::Tensor header_of(const torch::Tensor& tensor) {
  torch::Tensor header = torch::zeros({2 + kMostDimensions}, torch::kLong);
  header[0] = static_cast<std::int64_t>(tensor.scalar_type());
  header[1] = tensor.dim();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) header[2 + i] = tensor.size(i);
  return header;
}

void check_dimensions(std::string_view operation, const torch::Tensor& tensor) {
  if (tensor.dim() <= kMostDimensions) return;
  throw InvalidArgument(std::string(operation) + ": a tensor of " + std::to_string(tensor.dim()) +
                        " dimensions; there may be " + std::to_string(kMostDimensions));
}

void send_one(const Group& group, const torch::Tensor& tensor, int to_rank, int tag) {
  std::vector<torch::Tensor> tensors{as_moved(tensor)};
  distributed::run_collective(group, "send", [&] { group.process_group->send(tensors, to_rank, tag)->wait(); });
}

void receive_one(const Group& group, const torch::Tensor& tensor, int from_rank, int tag) {
  std::vector<torch::Tensor> tensors{as_moved(tensor)};
  distributed::run_collective(group, "recv", [&] { group.process_group->recv(tensors, from_rank, tag)->wait(); });
}

// Receives a header. Throws InvalidArgument if another tensor comes than one like this, after it has received that.
void check_header(const Group& group, const torch::Tensor& tensor, int from_rank, int tag) {
  const torch::Tensor expected = header_of(tensor);
  torch::Tensor header = torch::empty_like(expected);
  receive_one(group, header, from_rank, tag);
  if (torch::equal(header, expected)) return;
  const auto type = static_cast<torch::ScalarType>(header[0].item<std::int64_t>());
  const torch::Tensor sizes = header.narrow(0, 2, header[1].item<std::int64_t>());
  const torch::IntArrayRef shape(sizes.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(sizes.size(0)));
  receive_one(group, torch::empty(shape, tensor.options().dtype(type)), from_rank, tag);
  throw InvalidArgument("recv of rank " + std::to_string(group.rank) + ": rank " + std::to_string(from_rank) +
                        " has sent " + description_of(type, shape) + ", and the tensor to receive it is " +
                        description_of(tensor.scalar_type(), tensor.sizes()));
}

}  // namespace

void distributed::all_reduce(const Group& group, torch::Tensor& tensor, train::ReduceOp op) {
  if (!group.process_group) return;
  in_place(tensor, [&](torch::Tensor& values) {
    std::vector<torch::Tensor> tensors{as_combined(values)};
    c10d::AllreduceOptions options;
    options.reduceOp = backend_op(op, values.scalar_type());
    run_collective(group, "all_reduce", [&] { group.process_group->allreduce(tensors, options)->wait(); });
    if (op == train::ReduceOp::mean) values.div_(group.world_size);
  });
}

std::vector<torch::Tensor> distributed::all_gather(const Group& group, const torch::Tensor& tensor) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor own = plain_values(tensor);
  if (!group.process_group) return {own.clone()};
  std::vector<torch::Tensor> all;
  std::vector<torch::Tensor> input{as_moved(own)};
  std::vector<std::vector<torch::Tensor>> output(1);
  for (int rank = 0; rank < group.world_size; ++rank)
    output[0].push_back(as_moved(all.emplace_back(torch::empty_like(own))));
  run_collective(group, "all_gather", [&] { group.process_group->allgather(output, input)->wait(); });
  return all;
}

std::vector<std::string> distributed::all_gather_text(const Group& group, const std::string& text) {
  const std::vector<torch::Tensor> sizes = all_gather(group, torch::tensor(static_cast<std::int64_t>(text.size())));
  std::int64_t longest = 0;
  for (const torch::Tensor& size : sizes) longest = std::max(longest, size.item<std::int64_t>());
  torch::Tensor bytes = torch::zeros({longest}, torch::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const torch::Tensor& gathered : all_gather(group, bytes)) {
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
  check_calls(group, "all_reduce", tensor, name_of(op));
  distributed::all_reduce(group, tensor, op);
}

void broadcast(torch::Tensor& tensor, int from_rank) {
  check_defined("broadcast", tensor);
  const Group group = distributed::current_group();
  check_rank("broadcast", group, from_rank);
  if (!group.process_group) return;
  check_calls(group, "broadcast", tensor, "from rank " + std::to_string(from_rank));
  in_place(tensor, [&](torch::Tensor& values) {
    std::vector<torch::Tensor> tensors{as_moved(values)};
    c10d::BroadcastOptions options;
    options.rootRank = from_rank;
    distributed::run_collective(group, "broadcast", [&] { group.process_group->broadcast(tensors, options)->wait(); });
  });
}

std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) {
  check_defined("all_gather", tensor);
  const Group group = distributed::current_group();
  check_calls(group, "all_gather", tensor);
  return distributed::all_gather(group, tensor);
}

torch::Tensor reduce_scatter(const torch::Tensor& tensor, ReduceOp op) {
  check_reduction("reduce_scatter", tensor, op);
  const Group group = distributed::current_group();
  if (tensor.dim() == 0 || tensor.size(0) % group.world_size != 0) {
    throw InvalidArgument("reduce_scatter: a tensor of the shape " + c10::str(tensor.sizes()) + " for " +
                          std::to_string(group.world_size) + " ranks, which must get equally many rows");
  }
  const torch::NoGradGuard no_gradients;
  const torch::Tensor whole = plain_values(tensor);
  if (!group.process_group) return whole.clone();
  check_calls(group, "reduce_scatter", tensor, name_of(op));
  torch::Tensor own = torch::empty_like(whole.narrow(0, 0, whole.size(0) / group.world_size));
  c10d::ReduceScatterOptions options;
  options.reduceOp = backend_op(op, whole.scalar_type());
  torch::Tensor input = as_combined(whole);
  torch::Tensor output = as_combined(own);
  distributed::run_collective(group, "reduce_scatter",
                              [&] { group.process_group->_reduce_scatter_base(output, input, options)->wait(); });
  if (op == ReduceOp::mean) own.div_(group.world_size);
  return own;
}

std::vector<torch::Tensor> gather(const torch::Tensor& tensor, int to_rank) {
  check_defined("gather", tensor);
  const Group group = distributed::current_group();
  check_rank("gather", group, to_rank);
  const torch::NoGradGuard no_gradients;
  const torch::Tensor own = plain_values(tensor);
  if (!group.process_group) return {own.clone()};
  check_calls(group, "gather", tensor, "to rank " + std::to_string(to_rank));
  std::vector<torch::Tensor> all;
  std::vector<torch::Tensor> input{as_moved(own)};
  std::vector<std::vector<torch::Tensor>> output;
  if (group.rank == to_rank) {
    output.emplace_back();
    for (int rank = 0; rank < group.world_size; ++rank)
      output[0].push_back(as_moved(all.emplace_back(torch::empty_like(own))));
  }
  c10d::GatherOptions options;
  options.rootRank = to_rank;
  distributed::run_collective(group, "gather", [&] { group.process_group->gather(output, input, options)->wait(); });
  return all;
}

void send(const torch::Tensor& tensor, int to_rank, int tag) {
  check_defined("send", tensor);
  const Group group = distributed::current_group();
  check_other_rank("send", group, to_rank);
  check_dimensions("send", tensor);
  if (group.checks_calls) send_one(group, header_of(tensor), to_rank, tag);
  send_one(group, plain_values(tensor), to_rank, tag);
}

void recv(torch::Tensor& tensor, int from_rank, int tag) {
  check_defined("recv", tensor);
  const Group group = distributed::current_group();
  check_other_rank("recv", group, from_rank);
  check_dimensions("recv", tensor);
  if (group.checks_calls) check_header(group, tensor, from_rank, tag);
  in_place(tensor, [&](torch::Tensor& values) { receive_one(group, values, from_rank, tag); });
}

}  // namespace train
}  // namespace cadre
