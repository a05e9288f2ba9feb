// A search space has a vector of structs.
// says: Layer
// says: an entry of a search space is a domain
#include <vector>

#include <cadre/tune.h>

using namespace cadre;

struct Layer {
  int width = 1;
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::TunerOptions options{.param_space = {{"layers", std::vector<Layer>{{1}, {2}}}}};
  static_cast<void>(options);
}
