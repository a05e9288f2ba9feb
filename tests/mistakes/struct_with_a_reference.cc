// A member is a reference.
// says: no reference
#include <cadre/tune.h>

using namespace cadre;

inline double best = 0;
struct Hyperparameters {
  double lr = 0.1;
  double& best_so_far = best;
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
