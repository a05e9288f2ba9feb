#include <cadre/data.h>
#include <cadre/random.h>

using namespace cadre;

// SNIPPET
