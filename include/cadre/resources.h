/// \file
/// What workers need and what a machine has.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cadre {

/// Amounts by name. They are finite and 0 or more, in steps of 0.0001; a trial needs some amount of something. Amounts
/// are accounting, not isolation: a trial on half a CPU shares a core with another one.
///
/// GPUs are an exception: a trial finds its own in CUDA_VISIBLE_DEVICES, and none where it asks for none on a machine
/// that has some.
struct Resources {
  double cpus = 1;                            ///< CPUs
  double gpus = 0;                            ///< up to 1 a share of one GPU; above 1 whole ones only
  std::map<std::string, double> custom = {};  ///< any names; the machine's own are given to cadre::init
  /// The kind of GPUs that a machine has, or is to have, such as "H100". Default: any.
  std::string accelerator_type = {};
  /// Labels of a machine and their values; or which it is to have: "eu" for that value, "!eu" for another one or none,
  /// "in(eu,us)" for one of several, "!in(eu,us)" for none of them. Names and values have no spaces and none of "!(),".
  /// Source: Ray's label selectors.
  std::map<std::string, std::string> labels = {};

  bool operator==(const Resources&) const = default;  ///< the same amounts of the same on the same machines
};

/// How the bundles of a placement group are to lie on the machines of a cluster. On one machine all of them lie on it.
enum class PlacementStrategy {
  pack,           ///< on as few machines as possible
  spread,         ///< on as many as possible
  strict_pack,    ///< on one machine
  strict_spread,  ///< each on another machine
};

/// What a trial needs where it starts processes of its own, as a train::Trainer's workers: a bundle for the trainable
/// itself, which comes first and may be empty, and one for each of those. A trial has all of them or waits.
/// Bundles that ask for an accelerator type, or for a label, ask for the same one.
struct PlacementGroup {
  std::vector<Resources> bundles = {};                   ///< at least one that is not empty
  PlacementStrategy strategy = PlacementStrategy::pack;  ///< how they lie

  /// The sum of all bundles.
  Resources required_resources() const;
  bool operator==(const PlacementGroup&) const = default;  ///< the same bundles and strategy
};

}  // namespace cadre
