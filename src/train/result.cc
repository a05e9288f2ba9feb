#include "cadre/train.h"
#include "control/objective.h"
#include "train/read_run.h"

namespace cadre::train {

Result Result::from_directory(const std::filesystem::path& directory) { return read_run(directory).result; }

Checkpoint Result::get_best_checkpoint(const Objective& objective, std::optional<Mode> direction) const {
  const auto [metric, mode] = control::direction_of(objective, direction);
  std::vector<std::optional<double>> values;
  for (const ReportedCheckpoint& entry : best_checkpoints)
    values.push_back(control::finite_number(entry.metrics, metric));
  const std::optional<std::size_t> best = control::index_of_best(values, mode);
  if (!best) throw NotFound("no kept checkpoint of " + path.string() + " has a finite \"" + metric + "\"");
  return best_checkpoints[*best].checkpoint;
}

}  // namespace cadre::train
