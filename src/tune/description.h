// An experiment's trainable and options as the store keeps them: complete, so that the experiment can be continued from
// its directory alone. docs/formats.md describes the JSON.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

struct Description {
  Trainable trainable;
  TunerOptions options = {};  // without run_config's name and storage_path
};

Dict describe(const Trainable& trainable, const TunerOptions& options);

// Reads what describe() made, `source` names it in messages. Throws StorageError that names the key for a field that is
// missing, unknown or of the wrong type.
Description parse_description(const Value& stored, const std::string& source);

// Where two descriptions differ: the path of the key ("tune_config/seed") and both values as JSON, empty where there is
// none. `verbose` and `log_to_driver` are left out: they decide nothing.
struct Difference {
  std::string path;
  std::string before;
  std::string now;
};
std::vector<Difference> differences(const Dict& before, const Dict& now);

}  // namespace cadre::tune
