#include "torch/distributed/replicas.h"

// group.h comes first: it includes torch.h.
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <cstddef>

#include "torch/distributed/collectives.h"
#include "torch/distributed/model_layout.h"

namespace cadre::distributed {
namespace {

constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;

}  // namespace

std::vector<torch::Tensor> values_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined()) values.push_back(tensor.variable_data());
  }
  return values;
}

void check_equal_layouts(const Group& group, const torch::nn::Module& model, const std::string& caller,
                         const std::vector<std::string>& further) {
  std::vector<std::string> own = describe_layout(model);
  own.insert(own.end(), further.begin(), further.end());
  std::vector<std::vector<std::string>> layouts;
  for (const std::string& text : all_gather_text(group, join_lines(own))) layouts.push_back(split_lines(text));
  const std::string fault = layout_fault(layouts);
  if (!fault.empty()) throw InvalidArgument(caller + ": the models differ between the ranks: " + fault);
}

void copy_from_rank_zero(const Group& group, const std::vector<torch::Tensor>& tensors) {
  if (tensors.empty()) return;
  const torch::NoGradGuard no_gradients;
  run_collective(group, "The broadcast of a model's state",
                 [&] { c10d::broadcast_coalesced(group.process_group, tensors, kBroadcastBucketBytes, /*rank=*/0); });
}

}  // namespace cadre::distributed
