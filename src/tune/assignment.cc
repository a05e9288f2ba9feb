#include "tune/assignment.h"

#include "base/stored.h"

namespace cadre::tune {

Value to_value(const TrialAssignment& assignment) { return base::to_stored(assignment); }

TrialAssignment to_assignment(const Value& payload) { return base::from_value<TrialAssignment>(payload); }

}  // namespace cadre::tune
