// The difference between two states of a document, for pages that have the earlier one. docs/formats.md describes it.
#pragma once

#include <optional>

#include "cadre/value.h"

namespace cadre::dashboard {

// Returns what makes `after` of `before`, as a value; empty if they are equal. NaN equals NaN.
std::optional<Value> change_between(const Value& before, const Value& after);

// Returns the later state. Throws InvalidArgument if the change does not fit.
Value changed(const Value& before, const Value& change);

}  // namespace cadre::dashboard
