#include "models/lenet.h"

namespace models {

using datasets::Mnist;

torch::Tensor LeNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor features = torch::relu(torch::max_pool2d(conv1(images), 2));
  features = torch::relu(torch::max_pool2d(conv2_drop(conv2(features)), 2));
  features = torch::dropout(torch::relu(fc1(features.flatten(1))), 0.25, is_training());
  return torch::log_softmax(fc2(features), 1);
}

void train_epoch(LeNet& classifier, const Mnist& examples) {
  constexpr double first_learning_rate = 4e-3;
  classifier->train();
  torch::optim::Adam optimizer(classifier->parameters(), torch::optim::AdamOptions(first_learning_rate));
  const std::vector<torch::Tensor> batches = torch::randperm(examples.size()).split(64);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double remaining = 1 - static_cast<double>(i) / static_cast<double>(batches.size());
    optimizer.param_groups()[0].options().set_lr(first_learning_rate * remaining);
    const Mnist::Batch batch = examples.at(batches[i]);
    optimizer.zero_grad();
    torch::nll_loss(classifier(batch.images), batch.labels).backward();
    optimizer.step();
  }
}

torch::Tensor classify(LeNet& classifier, const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  classifier->eval();
  return classifier(torch::upsample_bilinear2d(images, {28, 28}, /*align_corners=*/false)).exp();
}

double accuracy(LeNet& classifier, const Mnist& examples) {
  const Mnist::Batch batch = examples.all();
  return classify(classifier, batch.images).argmax(1).eq(batch.labels).to(torch::kDouble).mean().item<double>();
}

}  // namespace models
