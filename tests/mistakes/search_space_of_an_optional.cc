// A search space has a std::optional.
// says: an entry of a search space is a domain
#include <optional>

#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  const std::optional<double> lr = 0.1;
  tune::TunerOptions options{.param_space = {{"lr", lr}}};
  static_cast<void>(options);
}
