// A config has no std::chrono durations.
// says: a value is read as a bool, integer, float, double
#include <chrono>

#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"s", config.get<std::chrono::seconds>("s").count()}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
