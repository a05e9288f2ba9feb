// A stopper is a lambda.
// says: fn<f>
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::RunConfig run{.stop = [](const std::string&, const Metrics& result) { return result.get<double>("loss") < 1; }};
  static_cast<void>(run);
}
