// How good generated images are, by what a classifier says of them.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace models {

// How sure the classifier is of each image, and how different the images are (Salimans et al., 2016,
// https://arxiv.org/abs/1606.03498): exp(mean of KL(p(y|x) || p(y))), from 1 to the number of classes. Of the
// probabilities [N, classes] of N > 0 images.
double inception_score(const torch::Tensor& probabilities);

// Of how many classes there is an image whose probability is `confidence` or more. Of the probabilities [N, classes] of
// N > 0 images.
std::int64_t classes_found(const torch::Tensor& probabilities, double confidence);

}  // namespace models
