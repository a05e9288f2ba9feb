// The Trainer is given the function itself.
// says: fn<f>
#include <cadre/train.h>

using namespace cadre;

void train_net(const Config& config) { train::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(train_net, {.scaling_config = {.num_workers = 2}});
  trainer.fit();
}
