// A search space has a lambda.
// says: fn<f>
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.param_space = {{"lr", [](const Config&) { return 0.1; }}}};
  static_cast<void>(options);
}
