// Which tensors a model has, so that ranks can compare theirs before they exchange any.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace cadre::distributed {

// A line for each parameter and buffer, in the module's order: name, type, shape, and what else must be the same.
std::vector<std::string> describe_layout(const torch::nn::Module& model);

// Lines to one text and back.
std::string join_lines(const std::vector<std::string>& lines);
std::vector<std::string> split_lines(const std::string& text);

// What is wrong where the ranks' layouts (by rank) differ: the first difference from rank 0; empty where there is none.
std::string layout_fault(const std::vector<std::vector<std::string>>& layouts);

}  // namespace cadre::distributed
