// config.get needs a type.
// says: get
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"lr", config.get("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
