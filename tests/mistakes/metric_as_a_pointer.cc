// A metric is a pointer.
// says: a pointer is no value of metrics
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  double loss = 1;
  double* best = &loss;
  tune::report({{"loss", best}});
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
