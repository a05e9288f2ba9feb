// Resources have names.
// says: .cpus
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::with_resources(fn<train_model>, 2), {});
  tuner.fit();
}
