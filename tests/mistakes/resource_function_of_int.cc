// The resource function returns a number.
// says: Resources
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }
int resources(const Config&) { return 2; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::with_resources(fn<train_model>, fn<resources>), {});
  tuner.fit();
}
