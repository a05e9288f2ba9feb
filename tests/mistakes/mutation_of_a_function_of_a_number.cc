// The function of a mutation takes a number.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

double draw(double upper) { return upper / 2; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::PopulationBasedTraining pbt{.hyperparam_mutations = {{"lr", fn<draw>}}};
  static_cast<void>(pbt);
}
