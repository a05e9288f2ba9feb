// The class is no ClassTrainable.
// says: derives publicly from tune::ClassTrainable
#include <cadre/tune.h>

using namespace cadre;

struct Training {
  Metrics step() { return {{"loss", 1}}; }
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::trainable<Training>(), {});
  tuner.fit();
}
