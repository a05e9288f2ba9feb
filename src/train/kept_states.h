// In a rank's worker: state that is not the user's and goes with the run's checkpoints, as how far a rank has read a
// dataset.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cadre/value.h"

namespace cadre::train {

class KeptStates {
 public:
  // In a checkpoint's directory. Where several ranks have a part of it, that of the lowest one stays.
  static constexpr const char* kFileName = ".kept_states.json";

  // From now on `state` is asked with each checkpoint, in the thread that reports, in the place of an earlier one of
  // this name.
  void keep(const std::string& name, std::function<Value()> state) { states_[name] = std::move(state); }
  // Writes what is kept into a checkpoint that is about to be reported; nothing where nothing is.
  void write(const std::filesystem::path& checkpoint) const;
  // What a checkpoint was written with under a name.
  static std::optional<Value> read(const std::filesystem::path& checkpoint, const std::string& name);

 private:
  std::map<std::string, std::function<Value()>> states_;
};

}  // namespace cadre::train
