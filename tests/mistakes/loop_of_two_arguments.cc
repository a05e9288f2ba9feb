// The training function takes a rank.
// says: const Config&
#include <cadre/train.h>

using namespace cadre;

void train_net(const Config&, int rank) { train::report({{"rank", rank}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {});
  trainer.fit();
}
