// The training function returns a text.
// says: a training function returns nothing, a number or cadre::Metrics
#include <cadre/tune.h>

using namespace cadre;

std::string train_model(const Config&) { return "done"; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
