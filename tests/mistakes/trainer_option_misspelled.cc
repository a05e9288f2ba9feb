// num_workers is misspelled, in braces without a type.
// says: TrainerOptions
#include <cadre/train.h>

using namespace cadre;

void train_net(const Config& config) { train::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {.scaling_config = {.workers = 2}});
  trainer.fit();
}
