#include "train/capacity.h"

#include <fmt/format.h>

#include <vector>

#include "resources/resource_ledger.h"

namespace cadre::train {

std::int64_t capacity(const Resources& machine, const ScalingConfig& scaling) {
  const Resources each = scaling.worker_resources();
  resources::ResourceLedger ledger(machine);
  std::int64_t workers = 0;
  while (workers < scaling.num_workers.max && ledger.acquire(each)) ++workers;
  return workers;
}

std::int64_t capacity(const resources::Cluster& cluster, const Resources& worker, PlacementStrategy strategy,
                      std::int64_t most) {
  const auto fit = [&](std::int64_t workers) {
    resources::Cluster room = cluster;
    const std::vector<Resources> all(static_cast<std::size_t>(workers), worker);
    return room.acquire_all(all, strategy).has_value();
  };
  std::int64_t fitting = 0;  // this many do, and one more than `most` are not asked for
  while (fitting < most) {
    const std::int64_t half = fitting + (most - fitting + 1) / 2;
    fit(half) ? fitting = half : most = half - 1;
  }
  return fitting;
}

std::string shortage(const resources::Cluster& cluster, const ScalingConfig& scaling) {
  const Resources each = scaling.worker_resources();
  const std::int64_t workers = capacity(cluster, each, scaling.placement_strategy, scaling.num_workers.min);
  if (workers >= scaling.num_workers.min) return {};
  if (cluster.may_change()) {
    const std::string missing = cluster.shortage(each);
    return missing.empty() ? fmt::format("they have room for {}", workers) : missing;
  }
  const auto times = static_cast<double>(scaling.num_workers.min);
  Resources all = each;
  all.cpus *= times;
  all.gpus *= times;
  for (auto& [name, amount] : all.custom) amount *= times;
  const std::string missing = cluster.shortage(all);
  return missing.empty() ? fmt::format("its GPUs hold {} workers of {:g} gpus each", workers, each.gpus) : missing;
}

}  // namespace cadre::train
