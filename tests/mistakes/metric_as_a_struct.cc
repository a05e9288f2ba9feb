// A metric is a struct of the user's.
// says: Score
// says: a value of metrics or a config is a bool
#include <cadre/tune.h>

using namespace cadre;

struct Score {
  double value = 0;
};
void train_model(const Config&) { tune::report({{"loss", Score{1}}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
