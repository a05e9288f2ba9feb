// The options of a scheduler lack the function that makes it.
// says: options of a scheduler, searcher or stopper have a function make()
#include <cadre/tune.h>

struct StopTheSlow {
  double least_per_second = 1;
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  cadre::tune::TuneConfig config{.scheduler = StopTheSlow{}};
  static_cast<void>(config);
}
