// A mutation is a grid.
// says: a mutation is a domain
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                    .perturbation_interval = 4,
                                    .hyperparam_mutations = {{"lr", tune::grid_search({0.1, 0.2})}}};
  static_cast<void>(pbt);
}
