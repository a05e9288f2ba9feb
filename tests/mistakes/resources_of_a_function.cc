// with_resources is given the function itself.
// says: fn<f>
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }
Resources resources(const Config&) { return {.cpus = 2}; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::with_resources(fn<train_model>, resources), {});
  tuner.fit();
}
