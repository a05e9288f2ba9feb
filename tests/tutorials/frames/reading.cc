#include <cadre/data.h>

using namespace cadre;

data::Dataset read() {
  // SNIPPET
  return images;
}
