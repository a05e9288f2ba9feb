// Agents of an experiment on this machine, and what the soak does to them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "survival/network.h"
#include "survival/random.h"
#include "survival/subject.h"

namespace cadre::survival {

class Nodes {
 public:
  // `folder`: for the socket of their network.
  explicit Nodes(const std::filesystem::path& folder) : network_(folder / "network") {}

  std::string variable() const { return network_.variable(); }
  std::vector<pid_t> workers() const;  // of all nodes
  // Draws whom to disturb. `spares_workers`: no failure may be counted.
  static Victim draw_victim(Random& random, bool spares_workers);
  // Does it to a node at random. Returns false if there is none, or if it has no connection that could be cut.
  bool disturb(Victim victim, Random& random, const ControllerProcess& controller);
  void heal() { network_.heal(); }

 private:
  static Milliseconds draw_time(Random& random);

  Network network_;
};

}  // namespace cadre::survival
