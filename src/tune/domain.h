// What a domain means: drawing from it, and keeping an explored value inside it.
#pragma once

#include <string>

#include "base/random.h"
#include "cadre/tune/search_space.h"

namespace cadre::tune {

// A value of the domain: one number of the stream for each call.
Value sample(const Domain& domain, base::RandomStream& random);

// The value, or the nearest one of the domain. A real domain counts as closed here. Values of a Choice and values that
// are no numbers stay as they are.
Value clip(const Domain& domain, const Value& value);

// Why the domain cannot be drawn from ("its lower bound 1 is not below its upper bound 0"); empty when it can.
std::string fault_of(const Domain& domain);

// "uniform(0.001, 1.0)", for messages.
std::string to_string(const Domain& domain);

}  // namespace cadre::tune
