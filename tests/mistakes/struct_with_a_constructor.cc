// The struct has a constructor.
// says: no constructor
#include <cadre/tune.h>

using namespace cadre;

struct Hyperparameters {
  Hyperparameters() = default;
  explicit Hyperparameters(double rate) : lr(rate) {}
  double lr = 0.1;
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
