// The stop function lacks the trial's id.
// says: const std::string& trial_id
#include <cadre/tune.h>

using namespace cadre;

bool good(const Metrics& result) { return result.get<double>("loss") < 1; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::RunConfig run{.stop = fn<good>};
  static_cast<void>(run);
}
