// A method needs an object.
// says: derives from tune::ClassTrainable
#include <cadre/tune.h>

using namespace cadre;

struct Training {
  void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<&Training::train_model>, {});
  tuner.fit();
}
