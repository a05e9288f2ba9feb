#include <cadre/train_torch.h>

using namespace cadre;

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor images);
};
TORCH_MODULE(Net);

void train_net(const Metrics& metrics) {
  // SNIPPET
}
