// A member is a std::optional.
// says: momentum
#include <optional>

#include <cadre/tune.h>

using namespace cadre;

struct Hyperparameters {
  double lr = 0.1;
  std::optional<double> momentum = {};
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
