// The Tuner is given the function itself.
// says: fn<f>
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(train_model, {.tune_config = {.num_samples = 4}});
  tuner.fit();
}
