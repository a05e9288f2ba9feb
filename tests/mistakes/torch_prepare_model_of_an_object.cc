// The model is not in a pointer.
// says: std::make_shared<
#include <cadre/train_torch.h>

using namespace cadre;

struct Net : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return x; }
};
void train_net(const Config&) {
  Net net;
  auto model = train::prepare_model(net);
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::TorchTrainer trainer(fn<train_net>, {});
  trainer.fit();
}
