// A member is of a type that no config has.
// says: warm_up
#include <chrono>

#include <cadre/tune.h>

using namespace cadre;

struct Hyperparameters {
  double lr = 0.1;
  std::chrono::seconds warm_up = {};
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
