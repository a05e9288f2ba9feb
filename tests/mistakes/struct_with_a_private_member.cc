// A member is private.
// says: public members only
#include <cadre/tune.h>

using namespace cadre;

class Hyperparameters {
 public:
  double lr = 0.1;
  double momentum() const { return momentum_; }

 private:
  double momentum_ = 0;
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
