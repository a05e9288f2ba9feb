// The class can only be made from a number.
// says: default constructor
#include <cadre/tune.h>

using namespace cadre;

struct Training : tune::ClassTrainable {
  explicit Training(int width) : width_(width) {}
  Metrics step() override { return {{"loss", width_}}; }
  int width_;
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::trainable<Training>(), {});
  tuner.fit();
}
