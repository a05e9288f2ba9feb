// The struct that a training function of a run takes has a constructor.
// says: public members only
#include <cadre/train.h>

using namespace cadre;

struct Settings {
  Settings() = default;
  explicit Settings(double rate) : lr(rate) {}
  double lr = 0.1;
};
void train_net(const Settings& settings) { train::report({{"lr", settings.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {});
  trainer.fit();
}
