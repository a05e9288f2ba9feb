#include "tune/assignment.h"

#include "cadre/stored.h"

namespace cadre::tune {

Value to_value(const TrialAssignment& assignment) { return cadre::to_stored(assignment); }

TrialAssignment to_assignment(const Value& payload) { return cadre::from_value<TrialAssignment>(payload); }

}  // namespace cadre::tune
