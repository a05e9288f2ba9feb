#include <cadre/tune.h>

#include <cmath>

using namespace cadre;

void statements() {
  // SNIPPET
}
