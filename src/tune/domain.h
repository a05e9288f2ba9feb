// What a domain means: drawing from it, and keeping an explored value inside it.
#pragma once

#include <string>

#include "base/random.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"

namespace cadre::tune {

// An entry of the domain: a constant, but for a Choice whatever its option is.
SpaceEntry sample(const Domain& domain, base::RandomStream& random);

// The value inside the domain, or as near to it as `bounds` says. Here a real domain has its upper bound too, and where
// the domain has a q the value becomes the multiple of it that is nearest (half-way: the even one). An integer stays
// one: inside the domain, or next to it where it holds none. Values of a Choice or an Ordinal and values that are no
// numbers stay as they are.
Value keep_inside(const Domain& domain, const Value& value, Bounds bounds);

// The least amount that a number of the domain moves by when it is explored: its q, at least 1 for an integer.
double smallest_step(const Domain& domain, const Value& value);

// Whether a value that a person gives belongs to the entry: a number within the bounds (both included), one of the
// options, a dictionary of a nested space. A function may give anything.
bool contains(const SpaceEntry& entry, const Value& value);

// The options of a Choice or an Ordinal; false where some are no constants. Nothing for other domains.
bool constant_options(const Domain& domain, List& options);

// The same with its bounds in order; says whether they were not.
bool put_bounds_in_order(Domain& domain);

// Why the domain cannot be drawn from ("its bounds 1.0 and inf are not both finite"); empty when it can. Options that
// are domains are not looked at.
std::string fault_of(const Domain& domain);

// "uniform(0.001, 1.0)", for messages.
std::string to_string(const Domain& domain);
std::string to_string(const SpaceEntry& entry);

}  // namespace cadre::tune
