// The training function returns a struct.
// says: a training function returns nothing, or a bool
#include <cadre/train.h>

using namespace cadre;

struct Score {
  double value = 0;
};
Score train_net(const Config&) { return {1}; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {});
  trainer.fit();
}
