#include "train/assignment.h"

#include <fmt/format.h>

#include "cadre/stored.h"

namespace cadre::train {

Value to_value(const RankAssignment& assignment) { return cadre::to_stored(assignment); }

RankAssignment to_assignment(const Value& payload) { return cadre::from_value<RankAssignment>(payload); }

std::string directory_of_rank(std::int64_t rank) { return fmt::format("rank_{}", rank); }

}  // namespace cadre::train
