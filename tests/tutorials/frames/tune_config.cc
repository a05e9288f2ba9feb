#include <cadre/tune.h>

using namespace cadre;

tune::TuneConfig tune_config() {
  return {
      // SNIPPET
  };
}
