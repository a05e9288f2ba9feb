// A metric is a vector of numbers.
// says: cadre::List(items.begin(), items.end())
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  const std::vector<double> losses = {1, 2};
  tune::report({{"losses", losses}});
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
