#include "train/assignment.h"

#include <fmt/format.h>

#include "base/archive.h"
#include "run/resource_fields.h"

namespace cadre::run {

void fields(auto& archive, base::Is<GroupPlace> auto& place) {
  archive("world_rank", place.world_rank);
  archive("world_size", place.world_size);
  archive("local_rank", place.local_rank);
  archive("local_world_size", place.local_world_size);
  archive("node_rank", place.node_rank);
}

}  // namespace cadre::run

namespace cadre::train {

void fields(auto& archive, base::Is<RankAssignment> auto& assignment) {
  archive("run_name", assignment.run_name);
  archive("run_directory", assignment.run_directory);
  archive("place", assignment.place);
  archive("attempt", assignment.attempt);
  archive("config", assignment.config);
  archive("checkpoint", assignment.checkpoint);
  archive("step", assignment.step);
  archive("resources", assignment.resources);
  archive("collective_timeout_ms", assignment.collective_timeout_ms);
  archive("backend", assignment.backend);
  archive("backend_options", assignment.backend_options);
  archive("visible_devices", assignment.visible_devices);
  archive("has_validator", assignment.has_validator);
  archive("datasets", assignment.datasets);
  archive("runs_in_directory", assignment.runs_in_directory);
}

Value to_value(const RankAssignment& assignment) { return base::SaveArchive::to_value(assignment); }

RankAssignment to_assignment(const Value& payload) {
  RankAssignment assignment;
  base::LoadArchive::load(payload, assignment);
  return assignment;
}

std::string directory_of_rank(std::int64_t rank) { return fmt::format("rank_{}", rank); }

}  // namespace cadre::train
