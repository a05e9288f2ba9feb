// The quality of generated images, measured with a classifier.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace models {

// Returns the inception score: how confident the classifier is about each image, and how diverse the images are
// (Salimans et al., 2016, https://arxiv.org/abs/1606.03498): exp(mean of KL(p(y|x) || p(y))), from 1 to the number of
// classes. `probabilities` is [N, classes] for N > 0 images.
double inception_score(const torch::Tensor& probabilities);

// Returns the number of classes that have an image with a probability of at least `confidence`. `probabilities` is [N,
// classes] for N > 0 images.
std::int64_t classes_found(const torch::Tensor& probabilities, double confidence);

}  // namespace models
