// Reading a training run from its store: the events are replayed in a Run, and nothing is changed.
#pragma once

#include <filesystem>
#include <vector>

#include "cadre/train.h"
#include "cadre/value.h"

namespace cadre::train {

struct ReadRun {
  Result result = {};
  TrainerOptions options = {};
  std::vector<Dict> rows = {};  // of the reports, as in result.json, without the config
};

// Throws like Result::from_directory.
ReadRun read_run(const std::filesystem::path& directory);

}  // namespace cadre::train
