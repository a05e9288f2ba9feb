#include <cadre/torch.h>
#include <cadre/tune.h>

#include <optional>

using namespace cadre;

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor images);
};
TORCH_MODULE(Net);
void train_epoch(Net& model, const torch::data::datasets::MNIST& images, double lr);
double test(Net& model);

// SNIPPET
