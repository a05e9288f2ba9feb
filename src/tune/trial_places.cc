#include "tune/trial_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace cadre::tune {
namespace {

// Each node has shares of one GPU, or whole ones (Resources::gpus), whichever bundles it has.
bool have_gpus_that_can_be_parted(const Needs& needs) {
  const auto is_whole = [](const Resources& bundle) { return bundle.gpus == std::floor(bundle.gpus); };
  return needs.total.gpus <= 1 || std::ranges::all_of(needs.bundles, is_whole);
}

// Returns what each node has of bundles that are at these places, the worker's node first.
std::vector<Share> to_shares(const Needs& needs, const std::vector<resources::Place>& places) {
  struct Part {
    PlacementGroup all = {};
    PlacementGroup of_workers = {};
  };
  std::map<resources::NodeId, Part> parts;
  for (std::size_t i = 0; i < needs.bundles.size(); ++i) {
    Part& part = parts[places[i].node];
    part.all.bundles.push_back(needs.bundles[i]);
    if (i > 0 || !needs.first_is_own) part.of_workers.bundles.push_back(needs.bundles[i]);
  }
  std::vector<Share> shares;
  const auto add = [&](resources::NodeId node, const Part& part) {
    shares.push_back({.place = {.node = node}, .held = part.all.required_resources()});
    if (!part.of_workers.bundles.empty()) shares.back().of_workers = part.of_workers.required_resources();
  };
  const auto own = parts.extract(places.front().node);
  add(own.key(), own.mapped());
  for (const auto& [node, part] : parts) add(node, part);
  return shares;
}

std::optional<std::vector<Share>> acquire_on_one(resources::Cluster& cluster, const Needs& needs) {
  std::optional<resources::Place> place = cluster.acquire(needs.total);
  if (!place) return std::nullopt;
  return std::vector{Share{.place = *std::move(place), .held = needs.total, .of_workers = needs.of_workers}};
}

std::optional<std::vector<Share>> acquire_on_several(resources::Cluster& cluster, const Needs& needs) {
  const auto places = cluster.acquire_all(needs.bundles, needs.strategy);
  if (!places) return std::nullopt;
  for (std::size_t i = 0; i < places->size(); ++i) cluster.release(needs.bundles[i], (*places)[i]);
  // What a node has is one amount, as where it has all: so a trial has its GPUs next to each other.
  std::vector<Share> shares = to_shares(needs, *places);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    std::optional<resources::Place> place =
        cluster.acquire(shares[i].held, resources::Only{.node = shares[i].place.node});
    if (!place) {
      shares.resize(i);
      release(cluster, shares);
      return std::nullopt;
    }
    shares[i].place = *std::move(place);
  }
  return shares;
}

}  // namespace

bool may_be_parted(const resources::Cluster& cluster, const Needs& needs) {
  return cluster.may_change() && needs.bundles.size() > 1 && needs.strategy != PlacementStrategy::strict_pack &&
         have_gpus_that_can_be_parted(needs);
}

std::optional<std::vector<Share>> acquire(resources::Cluster& cluster, const Needs& needs) {
  if (!may_be_parted(cluster, needs)) return acquire_on_one(cluster, needs);
  if (needs.strategy == PlacementStrategy::pack) {
    if (auto shares = acquire_on_one(cluster, needs)) return shares;
  }
  return acquire_on_several(cluster, needs);
}

bool has_room(resources::Cluster& cluster, const Needs& needs) {
  if (!may_be_parted(cluster, needs)) return cluster.is_free(needs.total);
  const auto shares = acquire(cluster, needs);
  if (shares) release(cluster, *shares);
  return shares.has_value();
}

std::vector<Share> shares_of(const Trial& trial) {
  if (!trial.held) return {};
  return trial.shares.empty() ? std::vector{Share{.place = trial.place(), .held = *trial.held}} : trial.shares;
}

void occupy(resources::Cluster& cluster, const std::vector<Share>& shares) {
  for (const Share& share : shares) cluster.occupy(share.held, share.place);
}

void release(resources::Cluster& cluster, const std::vector<Share>& shares) {
  for (const Share& share : shares) cluster.release(share.held, share.place);
}

bool is_free_again(const resources::Cluster& cluster, const std::vector<Share>& shares) {
  return std::ranges::all_of(shares, [&](const Share& share) {
    const resources::Gpus& gpus = share.place.gpus;
    return cluster.is_free(share.held, resources::Only{.node = share.place.node,
                                                       .gpus = gpus.empty() ? std::nullopt : std::optional(gpus)});
  });
}

std::string shortage(const resources::Cluster& cluster, const Needs& needs) {
  const std::size_t apart = needs.strategy == PlacementStrategy::strict_spread ? needs.bundles.size() : 1;
  if (apart > cluster.size() && (cluster.size() > 0 || !cluster.may_change()))
    return fmt::format("strict_spread needs {} machines, and there {}", apart,
                       cluster.size() == 1 ? "is one" : fmt::format("are {}", cluster.size()));
  if (!may_be_parted(cluster, needs)) return cluster.shortage(needs.total);
  for (const Resources& bundle : needs.bundles) {
    if (std::string missing = cluster.shortage(bundle); !missing.empty()) return missing;
  }
  resources::Cluster empty(cluster.list());
  return has_room(empty, needs) ? "" : fmt::format("they have no room for {} bundles", needs.bundles.size());
}

}  // namespace cadre::tune
