// A lambda has no name.
// says: a lambda or an instance of a template has no name
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<[](const Config&) {}>, {});
  tuner.fit();
}
