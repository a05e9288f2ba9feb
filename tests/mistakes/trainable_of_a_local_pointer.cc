// A local variable is no function of the program.
// says: fn<chosen>
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  auto* chosen = argc > 1 ? &train_model : nullptr;
  tune::Tuner tuner(fn<chosen>, {});
  tuner.fit();
}
