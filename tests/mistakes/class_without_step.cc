// The class lacks step().
// says: step()
#include <cadre/tune.h>

using namespace cadre;

struct Training : tune::ClassTrainable {
  void setup(const Config&) override {}
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(tune::trainable<Training>(), {});
  tuner.fit();
}
