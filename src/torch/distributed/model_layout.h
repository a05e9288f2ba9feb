// The layout of a model's tensors, which ranks compare before they exchange tensors.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace cadre::distributed {

// Returns a line for each parameter and buffer, in the module's order: name, type, shape, and other properties that
// must be equal.
std::vector<std::string> describe_layout(const torch::nn::Module& model);

// Convert lines to one text and back.
std::string join_lines(const std::vector<std::string>& lines);
std::vector<std::string> split_lines(const std::string& text);

// Returns the first difference of the ranks' layouts (by rank) from rank 0; empty if there is none.
std::string layout_fault(const std::vector<std::vector<std::string>>& layouts);

}  // namespace cadre::distributed
