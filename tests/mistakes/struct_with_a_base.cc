// The struct has a base.
// says: no base
#include <cadre/tune.h>

using namespace cadre;

struct Common {
  int layers = 1;
};
struct Hyperparameters : Common {
  double lr = 0.1;
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
