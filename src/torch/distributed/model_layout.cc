#include "torch/distributed/model_layout.h"

#include <algorithm>
#include <sstream>

namespace cadre::distributed {
namespace {

std::string describe(const char* kind, const std::string& name, const torch::Tensor& tensor) {
  std::ostringstream line;
  line << kind << " \"" << name << "\" (" << tensor.scalar_type() << " " << tensor.sizes();
  if (!tensor.is_contiguous()) line << " with strides " << tensor.strides();
  if (*kind == 'p' && !tensor.requires_grad()) line << ", without a gradient";
  line << ")";
  return line.str();
}

std::string line_at(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? lines[index] : "nothing";
}

}  // namespace

std::vector<std::string> describe_layout(const torch::nn::Module& model) {
  std::vector<std::string> lines;
  for (const auto& item : model.named_parameters()) lines.push_back(describe("parameter", item.key(), item.value()));
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) lines.push_back(describe("buffer", item.key(), item.value()));
  }
  return lines;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string layout_fault(const std::vector<std::vector<std::string>>& layouts) {
  const std::vector<std::string>& first = layouts.front();
  for (std::size_t rank = 1; rank < layouts.size(); ++rank) {
    const std::vector<std::string>& other = layouts[rank];
    for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
      if (line_at(first, i) == line_at(other, i)) continue;
      return "rank 0 has " + line_at(first, i) + " where rank " + std::to_string(rank) + " has " + line_at(other, i) +
             "; of " + std::to_string(first.size()) + " and " + std::to_string(other.size()) +
             " parameters and buffers this is number " + std::to_string(i + 1);
    }
  }
  return {};
}

}  // namespace cadre::distributed
