// In a rank's worker: internal state that is saved with the run's checkpoints, such as a rank's position in a dataset.
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
  // A file in a checkpoint's directory. If the parts of several ranks contain it, the lowest rank's is kept.
  static constexpr const char* kFileName = ".kept_states.json";

  // Calls `state` with each checkpoint from now on, in the thread that reports. Replaces an earlier one of this name.
  void keep(const std::string& name, std::function<Value()> state) { states_[name] = std::move(state); }
  // Writes the states into a checkpoint that is about to be reported, and waits while the disk is full; writes nothing
  // if there are none.
  void write(const std::filesystem::path& checkpoint) const;
  // Returns the state that was saved in a checkpoint under a name; empty: none.
  static std::optional<Value> read(const std::filesystem::path& checkpoint, const std::string& name);

 private:
  std::map<std::string, std::function<Value()>> states_;
};

}  // namespace cadre::train
