// A member of the struct that a training function of a run takes is of a type that no config has.
// says: warm_up
#include <chrono>

#include <cadre/train.h>

using namespace cadre;

struct Settings {
  double lr = 0.1;
  std::chrono::seconds warm_up = {};
};
void train_net(const Settings& settings) { train::report({{"lr", settings.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {});
  trainer.fit();
}
