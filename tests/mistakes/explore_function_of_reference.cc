// The explore function changes a config in place.
// says: Config f(Config)
#include <cadre/tune.h>

using namespace cadre;

void explore(Config& config) { config.set("lr", 1); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::PopulationBasedTraining pbt{.custom_explore_fn = fn<explore>};
  static_cast<void>(pbt);
}
