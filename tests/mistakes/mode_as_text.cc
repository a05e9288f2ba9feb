// The mode is a text.
// says: Mode
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.tune_config = {.metric = "loss", .mode = "min"}};
  static_cast<void>(options);
}
