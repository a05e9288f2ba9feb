#include <cadre/tune.h>

using namespace cadre;

tune::RunConfig run_config() {
  return {
      // SNIPPET
  };
}
