#include <cadre/data.h>

using namespace cadre;

void use(const data::Dataset& dataset) {
  // SNIPPET
}
