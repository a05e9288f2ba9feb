#include "train/assignment.h"

#include <fmt/format.h>

#include "base/stored.h"

namespace cadre::train {

Value to_value(const RankAssignment& assignment) { return base::to_stored(assignment); }

RankAssignment to_assignment(const Value& payload) { return base::from_value<RankAssignment>(payload); }

std::string directory_of_rank(std::int64_t rank) { return fmt::format("rank_{}", rank); }

}  // namespace cadre::train
