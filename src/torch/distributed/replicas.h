// The tensors of models that every rank has one of.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "torch/distributed/group.h"

namespace cadre::distributed {

// Returns tensors that share the values but not autograd's version counter: a backward pass that needs former values of
// a buffer does not fail.
std::vector<torch::Tensor> values_of(const std::vector<torch::Tensor>& tensors);

// Throws InvalidArgument if the models of the ranks differ, or the further lines that describe them. Collective.
void check_equal_layouts(const Group& group, const torch::nn::Module& model, const std::string& caller,
                         const std::vector<std::string>& further = {});

// Gives all ranks the values of rank 0. Collective.
void copy_from_rank_zero(const Group& group, const std::vector<torch::Tensor>& tensors);

}  // namespace cadre::distributed
