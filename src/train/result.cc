#include <fmt/format.h>

#include <cmath>

#include "cadre/train.h"
#include "control/objective.h"
#include "train/read_run.h"

namespace cadre::train {

Result Result::from_directory(const std::filesystem::path& directory) { return read_run(directory).result; }

Checkpoint Result::get_best_checkpoint(const Objective& objective, std::optional<Mode> direction) const {
  const auto [metric, mode] = control::direction_of(objective, direction);
  const ReportedCheckpoint* best = nullptr;
  double best_value = 0;
  for (const ReportedCheckpoint& entry : best_checkpoints) {
    const std::optional<double> value = entry.metrics.number(metric);
    if (!value || !std::isfinite(*value)) continue;
    const bool better = mode == Mode::max ? *value > best_value : *value < best_value;
    if (best != nullptr && !better) continue;
    best = &entry;
    best_value = *value;
  }
  if (best == nullptr) throw NotFound("no kept checkpoint of " + path.string() + " has a finite \"" + metric + "\"");
  return best->checkpoint;
}

}  // namespace cadre::train
