#include "tune/assignment.h"

#include "base/archive.h"
#include "run/resource_fields.h"

namespace cadre::tune {

void fields(auto& archive, base::Is<TrialAssignment> auto& assignment) {
  archive("experiment_name", assignment.experiment_name);
  archive("trial", assignment.trial);
  archive("trial_id", assignment.trial_id);
  archive("trial_name", assignment.trial_name);
  archive("trial_directory", assignment.trial_directory);
  archive("attempt", assignment.attempt);
  archive("config", assignment.config);
  archive("parameters", assignment.parameters);
  archive("metric", assignment.metric);
  archive("checkpoint", assignment.checkpoint);
  archive("checkpoint_metrics", assignment.checkpoint_metrics);
  archive("step", assignment.step);
  archive("seed", assignment.seed);
  archive("resources", assignment.resources);
  archive("worker_resources", assignment.worker_resources);
  archive("checkpoint_frequency", assignment.checkpoint_frequency);
  archive("checkpoint_at_end", assignment.checkpoint_at_end);
  archive("runs_in_directory", assignment.runs_in_directory);
  archive("visible_devices", assignment.visible_devices);
}

Value to_value(const TrialAssignment& assignment) { return base::SaveArchive::to_value(assignment); }

TrialAssignment to_assignment(const Value& payload) {
  TrialAssignment assignment;
  base::LoadArchive::load(payload, assignment);
  return assignment;
}

}  // namespace cadre::tune
