// The validator takes metrics.
// says: const Checkpoint&
#include <cadre/train.h>

using namespace cadre;

Metrics validate(const Metrics& metrics) { return metrics; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::ValidationConfig validation{.function = fn<validate>};
  static_cast<void>(validation);
}
