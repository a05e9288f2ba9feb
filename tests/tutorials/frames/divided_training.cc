#include <cadre/train_torch.h>

using namespace cadre;

struct BlockImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x);
};
struct TransformerImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x);
};
TORCH_MODULE(Transformer);

void train_net(const torch::Tensor& x, const torch::Tensor& y, const Metrics& metrics) {
  auto loader = train::prepare_data_loader(train::TensorDataset(x, y), {.batch_size = 32});
  // SNIPPET
}
