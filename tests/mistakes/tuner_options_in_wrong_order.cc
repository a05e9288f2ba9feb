// run_config stands before tune_config.
// g++ says: TunerOptions::tune_config
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>,
                    tune::TunerOptions{.run_config = {.name = "a"}, .tune_config = {.num_samples = 3}});
  tuner.fit();
}
