// Ranks' shares of a training run's datasets, with the session of the worker.
#include "cadre/data/run_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cadre/data/dataset.h"
#include "cadre/error.h"
#include "train/session.h"

namespace cadre::data {

Shard get_dataset_shard(const std::string& name, const DatasetShardOptions& options) {
  train::Session* const session = train::Session::current();
  if (session == nullptr)
    throw Error("data::get_dataset_shard was called outside a worker of a training run; Dataset::shard works anywhere");
  const train::RankAssignment& rank = session->assignment();
  if (!rank.datasets.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [known, dataset] : rank.datasets) names.push_back(known);
    throw NotFound(fmt::format("the run has no dataset \"{}\"; TrainerOptions::datasets has: {}", name,
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  Shard shard = Dataset(rank.datasets.at(name))
                    .shard({.rank = rank.place.world_rank,
                            .world_size = rank.place.world_size,
                            .equal = options.equal,
                            .shuffle = options.shuffle,
                            .seed = options.seed});
  const std::string key = "dataset/" + name;
  if (!rank.checkpoint.empty()) {
    if (const auto position = train::KeptStates::read(rank.checkpoint, key)) shard.set_position(*position);
  }
  session->kept_states().keep(key, [shard] { return shard.position(); });
  return shard;
}

}  // namespace cadre::data
