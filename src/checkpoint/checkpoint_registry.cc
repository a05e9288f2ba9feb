#include "checkpoint/checkpoint_registry.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/inner_path.h"

namespace cadre::checkpoint {

namespace {

constexpr std::size_t kMostAncestors = 16;

}  // namespace

CheckpointId CheckpointRegistry::add(OwnerId owner, std::int64_t step, std::string directory, Metrics metrics,
                                     std::optional<CheckpointId> parent, bool is_ranked) {
  const CheckpointId id = state_.next_id++;
  std::vector<CheckpointId> ancestors;
  if (parent) {
    ancestors = state_.entries.at(*parent).record.ancestors;
    std::erase_if(ancestors, [this](CheckpointId older) { return !contains(older); });
    ancestors.insert(ancestors.begin(), *parent);
    ancestors.resize(std::min(ancestors.size(), kMostAncestors));
  }
  state_.entries[id] =
      RegistryEntry{.record = {id, owner, step, std::move(directory), std::move(metrics), std::move(ancestors)},
                    .is_ranked = is_ranked};
  state_.kept[owner].push_back(id);
  apply_retention(owner);
  return id;
}

void CheckpointRegistry::rank(CheckpointId id, Metrics metrics) {
  RegistryEntry& entry = state_.entries.at(id);
  entry.record.metrics = std::move(metrics);
  entry.is_ranked = true;
  apply_retention(entry.record.owner);
}

void CheckpointRegistry::retain(CheckpointId id) { ++state_.entries.at(id).references; }

void CheckpointRegistry::release(CheckpointId id) {
  RegistryEntry& entry = state_.entries.at(id);
  if (entry.references == 0) throw std::logic_error("checkpoint " + entry.record.directory + " is released too often");
  --entry.references;
  drop_if_unneeded(id);
}

bool CheckpointRegistry::is_synced(CheckpointId id) const {
  const auto synced = state_.synced.find(get(id).owner);
  return synced != state_.synced.end() && synced->second >= id;
}

void CheckpointRegistry::set_synced(CheckpointId id) {
  if (!contains(id)) return;
  const auto [newest, first] = state_.synced.try_emplace(state_.entries.at(id).record.owner, id);
  if (!first && newest->second > id) return;
  retain(id);
  if (!first) release(std::exchange(newest->second, id));
}

void CheckpointRegistry::drop(CheckpointId id) {
  RegistryEntry& entry = state_.entries.at(id);
  std::erase(state_.kept.at(entry.record.owner), id);
  entry.kept = false;
  const auto synced = state_.synced.find(entry.record.owner);
  if (synced != state_.synced.end() && synced->second == id) {
    state_.synced.erase(synced);
    --entry.references;
  }
  drop_if_unneeded(id);
}

std::optional<CheckpointId> CheckpointRegistry::ancestor(CheckpointId id) const {
  const std::vector<CheckpointId>& ancestors = state_.entries.at(id).record.ancestors;
  const auto found = std::ranges::find_if(ancestors, [this](CheckpointId older) { return contains(older); });
  return found == ancestors.end() ? std::nullopt : std::optional(*found);
}

std::vector<CheckpointRecord> CheckpointRegistry::take_deletable() { return std::exchange(deletable_, {}); }

const CheckpointRecord& CheckpointRegistry::get(CheckpointId id) const { return state_.entries.at(id).record; }

std::vector<CheckpointId> CheckpointRegistry::kept(OwnerId owner) const {
  const auto found = state_.kept.find(owner);
  if (found == state_.kept.end()) return {};
  std::vector<CheckpointId> ids = found->second;
  std::ranges::sort(ids, [this](CheckpointId a, CheckpointId b) { return worse(a, b); });
  return ids;
}

std::vector<CheckpointId> CheckpointRegistry::all() const {
  std::vector<CheckpointId> ids;
  for (const auto& [id, entry] : state_.entries) ids.push_back(id);
  return ids;
}

void CheckpointRegistry::restore(RegistryState state) {
  for (auto& [id, entry] : state.entries)
    entry.record.directory = base::InnerPath(entry.record.directory, "a checkpoint's directory").text();
  state_ = std::move(state);
}

void CheckpointRegistry::apply_retention(OwnerId owner) {
  std::vector<CheckpointId>& ids = state_.kept.at(owner);
  if (!config_.num_to_keep || ids.empty()) return;
  const CheckpointId latest = ids.back();
  std::vector<CheckpointId> ranked = ids;
  std::erase_if(ranked, [this](CheckpointId id) { return !state_.entries.at(id).is_ranked; });
  if (config_.checkpoint_score_attribute) std::erase_if(ranked, [this](CheckpointId id) { return !score(id); });
  std::ranges::sort(ranked, [this](CheckpointId a, CheckpointId b) { return worse(a, b); });
  const auto keep = static_cast<std::size_t>(*config_.num_to_keep);
  for (std::size_t i = 0; i + keep < ranked.size(); ++i) {
    if (ranked[i] == latest) continue;  // the trial itself continues from it
    std::erase(ids, ranked[i]);
    state_.entries.at(ranked[i]).kept = false;
    drop_if_unneeded(ranked[i]);
  }
}

void CheckpointRegistry::drop_if_unneeded(CheckpointId id) {
  const auto found = state_.entries.find(id);
  if (found->second.kept || found->second.references > 0) return;
  deletable_.push_back(std::move(found->second.record));
  state_.entries.erase(found);
}

// Returns true if `a` is worse than `b`. Ids ascend, so of equal checkpoints the newer one is better.
bool CheckpointRegistry::worse(CheckpointId a, CheckpointId b) const {
  const auto rank = [this](CheckpointId id) {
    const std::optional<double> value = config_.checkpoint_score_attribute ? score(id) : std::nullopt;
    if (!value || std::isnan(*value)) return std::tuple(false, 0.0, id);
    return std::tuple(true, config_.checkpoint_score_order == Mode::min ? -*value : *value, id);
  };
  return rank(a) < rank(b);
}

std::optional<double> CheckpointRegistry::score(CheckpointId id) const {
  return state_.entries.at(id).record.metrics.number(config_.checkpoint_score_attribute->name);
}

}  // namespace cadre::checkpoint
