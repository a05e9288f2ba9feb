// The validator returns a number.
// says: Metrics f(const Checkpoint&
#include <cadre/train.h>

using namespace cadre;

double validate(const Checkpoint&) { return 1; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::ValidationConfig validation{.function = fn<validate>};
  static_cast<void>(validation);
}
