// Drawing from a domain, and keeping an explored value inside it.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "cadre/tune/parameters.h"
#include "cadre/tune/schedulers/population_based_training.h"
#include "cadre/tune/search_space.h"

namespace cadre::tune {

// Draws an entry of the domain: a constant, except that an option of a Choice may be any entry.
SpaceEntry sample(const Domain& domain, base::RandomStream& random);

// Returns the value of the domain at a quantile, from 0 to below 1, where drawing gives smaller ones with that
// probability; options of a Choice or an Ordinal are in their order.
SpaceEntry at_quantile(const Domain& domain, double quantile);
// Return the quantiles from which on, and up to which, at_quantile() gives a value: equal for one of a continuum. The
// value must be in the domain; of a Choice or an Ordinal, it is the index of an option.
Parameter::Cell quantiles_of(const Domain& domain, const Value& value);
// Returns the number of values of a discrete domain; 0: it is a continuum, or has no bounds.
std::int64_t count_values(const Domain& domain);

// Returns the value moved into the domain, as far as `bounds` requires. The upper bound of a real domain counts as
// inside here, and where the domain has a q the value becomes the nearest multiple of it (half-way: the even one). An
// integer stays an integer: inside the domain, or next to it where the domain contains none. Values of a Choice or an
// Ordinal and values that are not numbers are returned unchanged.
Value keep_inside(const Domain& domain, const Value& value, Bounds bounds);

// Returns the smallest amount by which exploring moves a number of the domain: its q, at least 1 for an integer.
double smallest_step(const Domain& domain, const Value& value);

// Returns true if a value given by the user belongs to the entry: a number within the bounds (both included), one of
// the options, a dictionary of a nested space. Any value belongs to a function.
bool contains(const SpaceEntry& entry, const Value& value);

// Sets `options` to those of a Choice or an Ordinal; returns false if some are not constants. Leaves it unchanged for
// other domains.
bool constant_options(const Domain& domain, List& options);

// Sorts the domain's bounds; returns true if they were reversed.
bool put_bounds_in_order(Domain& domain);

// Return all domains of a space, and one domain, with their bounds in order; add a note for each that was reversed.
// `path` and `name` are for the notes.
Space with_sorted_bounds(const Space& space, const std::string& path, std::vector<std::string>& notes);
Domain with_sorted_bounds(const Domain& domain, const std::string& name, std::vector<std::string>& notes);

// Returns why the domain cannot be drawn from ("its bounds 1.0 and inf are not both finite"); empty if it can. Does not
// check options that are domains themselves.
std::string fault_of(const Domain& domain);

// Formats for messages: "uniform(0.001, 1.0)".
std::string to_string(const Domain& domain);
std::string to_string(const SpaceEntry& entry);

}  // namespace cadre::tune
