// The function of a search space takes a number.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

double draw(double upper) { return upper / 2; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.param_space = {{"lr", fn<draw>}}};
  static_cast<void>(options);
}
