// A metric is a tensor.
// says: .item<double>()
#include <cadre/torch.h>
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  const torch::Tensor loss = torch::zeros({});
  tune::report({{"loss", loss}});
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
