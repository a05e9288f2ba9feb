// The function of sample_from takes a number.
// says: const Config&
#include <cadre/tune.h>

using namespace cadre;

double draw(double upper) { return upper / 2; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.param_space = {{"lr", tune::sample_from<draw>()}}};
  static_cast<void>(options);
}
