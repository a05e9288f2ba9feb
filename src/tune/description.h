// An experiment's trainable and options as the store keeps them: complete, so that the experiment can be continued from
// its directory alone. docs/formats.md describes the JSON.
#pragma once

#include <string>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

struct Description {
  Trainable trainable = {};
  TunerOptions options = {};  // without run_config's name and storage_path
};

Dict describe(const Trainable& trainable, const TunerOptions& options);

// Parses the form that describe() returns, without its kind. A missing option has its default. Throws InvalidArgument
// with the path if an option is unknown or of the wrong type.
Description to_description(const Value& form);

// Parses the result of describe(); `source` names it in messages. A missing option has its default. Throws StorageError
// with the key if an option is unknown or of the wrong type.
Description parse_description(const Value& stored, const std::string& source);

}  // namespace cadre::tune
