#include <cadre/train.h>

using namespace cadre;

train::RunConfig run_config() {
  return {
      // SNIPPET
  };
}
