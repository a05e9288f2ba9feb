#include <cadre/torch/save_dict.h>
#include <cadre/tune.h>

using namespace cadre;

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor images);
};
TORCH_MODULE(Net);
double train_epoch(Net& model, torch::optim::Optimizer& optimizer);

// SNIPPET
