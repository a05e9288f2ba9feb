// The Tuner is given a lambda.
// says: lambda
// says: fn<f>
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  const double scale = 2;
  tune::Tuner tuner([=](const Config& config) { tune::report({{"loss", scale * config.get<double>("lr")}}); }, {});
  tuner.fit();
}
