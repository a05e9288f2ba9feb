// Searchers written in Python.
#pragma once

#include <memory>

#include "cadre/function.h"
#include "cadre/tune/searcher.h"

namespace cadre::python {

// Returns the searcher of which a HostFunction has the pickle. The GIL need not be held.
std::unique_ptr<tune::Searcher> make_searcher(const HostFunction& function);

}  // namespace cadre::python
