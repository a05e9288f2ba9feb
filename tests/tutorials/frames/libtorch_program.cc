#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor images);
};
TORCH_MODULE(Net);
using Dataset = torch::data::datasets::MapDataset<torch::data::datasets::MNIST, torch::data::transforms::Stack<>>;

void train_net(const Dataset& dataset, std::int64_t epochs) {
  // SNIPPET
}
