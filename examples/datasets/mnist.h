// MNIST, and data sets in its format (Fashion-MNIST, a user's own), as tensors.
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

// Images and labels of one part, as stored in the files: opening uncompressed files costs almost nothing, so workers
// start quickly. Batches are converted to floating point when they are drawn.
class Mnist {
 public:
  // Opens train-images-idx3-ubyte and train-labels-idx1-ubyte (or t10k-...) in a folder, uncompressed or with ".gz".
  // Throws cadre::NotFound or cadre::StorageError, naming the file.
  Mnist(const std::filesystem::path& folder, MnistPart part, Normalisation normalisation = {});

  std::int64_t size() const { return labels_.size(0); }

  struct Batch {
    torch::Tensor images;  // float [N, 1, 28, 28], normalised
    torch::Tensor labels;  // int64 [N]
  };
  // Returns the examples at these int64 indices [N].
  Batch at(const torch::Tensor& indices) const;
  // Returns all examples, in order.
  Batch all() const;

 private:
  Batch batch(const torch::Tensor& images, const torch::Tensor& labels) const;

  Normalisation normalisation_;
  torch::Tensor images_;  // uint8 [N, 1, 28, 28]
  torch::Tensor labels_;  // uint8 [N]
};

}  // namespace datasets
