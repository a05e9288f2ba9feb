// MNIST, and data sets in its format, as data sets for train::prepare_data_loader.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "datasets/mnist.h"

namespace datasets {

class MnistDataset : public torch::data::datasets::BatchDataset<MnistDataset, torch::data::Example<>> {
 public:
  // Uses only the first `max_examples`; 0: all.
  explicit MnistDataset(Mnist examples, std::int64_t max_examples = 0)
      : examples_(std::move(examples)),
        size_(max_examples > 0 ? std::min(max_examples, examples_.size()) : examples_.size()) {}

  torch::data::Example<> get_batch(torch::ArrayRef<std::size_t> indices) override {
    const std::vector<std::int64_t> rows(indices.begin(), indices.end());
    Mnist::Batch batch = examples_.at(torch::tensor(rows));
    return {std::move(batch.images), std::move(batch.labels)};
  }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(size_); }

 private:
  Mnist examples_;
  std::int64_t size_;
};

}  // namespace datasets
