#include "models/inception_score.h"

#include <tuple>

namespace models {

double inception_score(const torch::Tensor& probabilities) {
  const torch::Tensor of_image = probabilities.to(torch::kDouble);
  const torch::Tensor of_all = of_image.mean(0, /*keepdim=*/true);
  // 0 where a class has probability 0.
  const torch::Tensor divergence = torch::xlogy(of_image, of_image) - torch::xlogy(of_image, of_all);
  return divergence.sum(1).mean().exp().item<double>();
}

std::int64_t classes_found(const torch::Tensor& probabilities, double confidence) {
  return std::get<0>(probabilities.max(0)).ge(confidence).sum().item<std::int64_t>();
}

}  // namespace models
