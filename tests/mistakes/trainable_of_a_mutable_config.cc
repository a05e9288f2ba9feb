// The training function wants to change its config.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

void train_model(Config& config) { config.set("lr", 1); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
