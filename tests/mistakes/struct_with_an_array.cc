// A member is an array.
// says: no array
#include <cadre/tune.h>

using namespace cadre;

struct Hyperparameters {
  double lr = 0.1;
  double betas[2] = {0.9, 0.999};
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
