#include "tune/assignment.h"

namespace cadre::tune {

Value to_value(const TrialAssignment& assignment) {
  Dict custom;
  for (const auto& [name, amount] : assignment.resources.custom) custom.emplace_back(name, amount);
  return Dict{{"experiment_name", assignment.experiment_name},
              {"experiment_directory", assignment.experiment_directory},
              {"trial_id", assignment.trial_id},
              {"trial_name", assignment.trial_name},
              {"trial_directory", assignment.trial_directory},
              {"attempt", assignment.attempt},
              {"config", assignment.config.dict()},
              {"checkpoint", assignment.checkpoint},
              {"checkpoint_metrics", assignment.checkpoint_metrics.dict()},
              {"step", assignment.step},
              {"seed", assignment.seed},
              {"cpus", assignment.resources.cpus},
              {"gpus", assignment.resources.gpus},
              {"custom", std::move(custom)},
              {"visible_devices", assignment.visible_devices ? Value(*assignment.visible_devices) : Value()}};
}

TrialAssignment to_assignment(const Value& payload) {
  const Config fields(payload.dict());
  TrialAssignment assignment{.experiment_name = fields.get<std::string>("experiment_name"),
                             .experiment_directory = fields.get<std::string>("experiment_directory"),
                             .trial_id = fields.get<std::string>("trial_id"),
                             .trial_name = fields.get<std::string>("trial_name"),
                             .trial_directory = fields.get<std::string>("trial_directory"),
                             .attempt = fields.get<std::int64_t>("attempt"),
                             .config = Config(fields.get<Dict>("config")),
                             .checkpoint = fields.get<std::string>("checkpoint"),
                             .checkpoint_metrics = Metrics(fields.get<Dict>("checkpoint_metrics")),
                             .step = fields.get<std::int64_t>("step"),
                             .seed = fields.get<std::int64_t>("seed"),
                             .resources = {.cpus = fields.get<double>("cpus"), .gpus = fields.get<double>("gpus")}};
  for (const auto& [name, amount] : fields.get<Dict>("custom"))
    assignment.resources.custom[name] = amount.get<double>();
  if (const Value& devices = fields.at("visible_devices"); !devices.is_null())
    assignment.visible_devices = devices.get<std::string>();
  return assignment;
}

}  // namespace cadre::tune
