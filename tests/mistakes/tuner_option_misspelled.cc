// num_samples is misspelled, in braces without a type.
// says: TunerOptions
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {.tune_config = {.num_sample = 3}});
  tuner.fit();
}
