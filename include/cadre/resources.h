/// \file
/// Resources that workers need and that machines have.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cadre {

/// Amounts of resources by name. Amounts are finite and 0 or more, in steps of 0.0001; a trial needs more than 0 of at
/// least one resource. Amounts are accounting, not isolation: a trial on half a CPU shares a core with another one.
///
/// GPUs are an exception: a trial finds its own GPUs in CUDA_VISIBLE_DEVICES, and none if it asks for none on a machine
/// that has some.
struct Resources {
  double cpus = 1;                            ///< CPUs
  double gpus = 0;                            ///< up to 1: a share of one GPU; above 1: whole GPUs only
  std::map<std::string, double> custom = {};  ///< any names; cadre::init sets the machine's own
  /// Kind of GPUs that a machine has, or that are wanted, such as "H100". A machine with several kinds names that of
  /// each GPU, in the order of CUDA_VISIBLE_DEVICES or of their places on the bus: "A100,A100,A10G". Default: any.
  std::string accelerator_type = {};
  /// Labels of a machine and their values, or required labels: "eu" for that value, "!eu" for another value or none,
  /// "in(eu,us)" for one of several, "!in(eu,us)" for none of them. Names and values contain no spaces and none of
  /// "!(),". Source: Ray's label selectors.
  std::map<std::string, std::string> labels = {};

  bool operator==(const Resources&) const = default;  ///< compares all fields
};

/// The placement of a placement group's bundles on the machines of a cluster. On a single machine all bundles are on
/// it.
enum class PlacementStrategy {
  pack,           ///< on as few machines as possible
  spread,         ///< on as many machines as possible
  strict_pack,    ///< on one machine
  strict_spread,  ///< each on a different machine
};

/// The resources of a trial that starts processes of its own, such as the workers of a train::Trainer: a bundle for the
/// trainable itself, which comes first and may be empty, and one for each process. A trial gets all of them or waits.
/// On a cluster they may be on several nodes, as `strategy` says; an empty first bundle is where the second one is.
/// Bundles with shares of a GPU are on one node if they have more than one GPU together. Bundles that ask for an
/// accelerator type, or for a label, must ask for the same one.
struct PlacementGroup {
  std::vector<Resources> bundles = {};                   ///< at least one that is not empty
  PlacementStrategy strategy = PlacementStrategy::pack;  ///< placement of the bundles

  /// Returns the sum of all bundles.
  Resources required_resources() const;
  bool operator==(const PlacementGroup&) const = default;  ///< compares bundles and strategy
};

}  // namespace cadre
