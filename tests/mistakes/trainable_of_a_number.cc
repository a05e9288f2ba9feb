// The training function takes a number.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

void train_model(double lr) { tune::report({{"loss", lr}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
