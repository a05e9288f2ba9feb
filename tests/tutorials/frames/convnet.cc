#include <cadre/torch.h>

struct ConvNetImpl : torch::nn::Module {};
TORCH_MODULE(ConvNet);
void train_epoch(ConvNet& model, torch::optim::Optimizer& optimizer);
double test(ConvNet& model);

// SNIPPET
