// A mutation is a number instead of a domain.
// says: a mutation is a domain
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration", .perturbation_interval = 4, .hyperparam_mutations = {{"lr", 0.1}}};
  static_cast<void>(pbt);
}
