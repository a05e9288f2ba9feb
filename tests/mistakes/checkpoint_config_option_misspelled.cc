// num_to_keep is misspelled.
// says: num_to_keeep
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.run_config = {.checkpoint_config = {.num_to_keeep = 3}}};
  static_cast<void>(options);
}
