// MNIST and what has its format (Fashion-MNIST, a user's own) as tensors.
#pragma once

#include <torch/torch.h>

#include <filesystem>

namespace datasets {

enum class MnistPart { train, test };

// A pixel from 0 to 1 becomes (pixel - mean) / deviation.
struct Normalisation {
  double mean = 0.1307;  // MNIST's own
  double deviation = 0.3081;
};

// Images and labels of one part, as they lie in the files: opening plain files costs next to nothing, so that a worker
// starts quickly. Batches are turned into floating point numbers when they are drawn.
class Mnist {
 public:
  // Opens train-images-idx3-ubyte and train-labels-idx1-ubyte (or t10k-...) from a folder, plain or with ".gz".
  // Throws cadre::NotFound or cadre::StorageError that names the file.
  Mnist(const std::filesystem::path& folder, MnistPart part, Normalisation normalisation = {});

  std::int64_t size() const { return labels_.size(0); }

  struct Batch {
    torch::Tensor images;  // float [N, 1, 28, 28], normalised
    torch::Tensor labels;  // int64 [N]
  };
  // The examples at these int64 indices [N].
  Batch at(const torch::Tensor& indices) const;
  // All examples, in order.
  Batch all() const;

 private:
  Batch batch(const torch::Tensor& images, const torch::Tensor& labels) const;

  Normalisation normalisation_;
  torch::Tensor images_;  // uint8 [N, 1, 28, 28]
  torch::Tensor labels_;  // uint8 [N]
};

}  // namespace datasets
