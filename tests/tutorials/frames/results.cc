#include <cadre/tune.h>

#include <iostream>

using namespace cadre;

void look_at(const tune::ResultGrid& results) {
  // SNIPPET
}
