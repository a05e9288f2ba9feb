// The name of a template function does not distinguish it from other instances of the template.
// g++ says: an instance of a template has no name
#include <cadre/tune.h>

using namespace cadre;

template <class Number>
void train_model(const Config& config) {
  tune::report({{"loss", static_cast<Number>(config.get<double>("lr"))}});
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model<double>>, {});
  tuner.fit();
}
