// The training function takes nothing.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

int train_model() { return 1; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
