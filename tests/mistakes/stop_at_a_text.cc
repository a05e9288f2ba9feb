// A stop threshold is a text.
// says: a stop threshold is a number
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::RunConfig run{.stop = {{"loss", "0.5"}}};
  static_cast<void>(run);
}
