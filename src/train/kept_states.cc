#include "train/kept_states.h"

#include "base/file.h"
#include "base/json.h"
#include "worker/wait_for_space.h"

namespace cadre::train {
namespace fs = std::filesystem;

void KeptStates::write(const fs::path& checkpoint) const {
  if (states_.empty()) return;
  Dict states;
  for (const auto& [name, state] : states_) states.emplace_back(name, state());
  const std::string text = base::to_json(states);
  worker::wait_for_space([&] { base::write_file(checkpoint / kFileName, text); });
}

std::optional<Value> KeptStates::read(const fs::path& checkpoint, const std::string& name) {
  const fs::path file = checkpoint / kFileName;
  if (!fs::exists(file)) return std::nullopt;
  const Config states(base::parse_json(base::read_file(file), file.string()).dict());
  if (!states.contains(name)) return std::nullopt;
  return states.at(name);
}

}  // namespace cadre::train
