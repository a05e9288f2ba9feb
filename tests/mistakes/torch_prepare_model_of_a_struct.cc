// The model is no module.
// says: torch::nn::Module
#include <cadre/train_torch.h>

using namespace cadre;

struct Net {
  torch::Tensor forward(torch::Tensor x) { return x; }
};
void train_net(const Config&) { auto model = train::prepare_model(std::make_shared<Net>()); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::TorchTrainer trainer(fn<train_net>, {});
  trainer.fit();
}
