#include "engine/cluster/pool.h"

#include <algorithm>

#include "engine/cluster/provider.h"
#include "resources/resource_ledger.h"

namespace cadre::engine::cluster {
namespace {

using resources::ResourceLedger;

constexpr std::chrono::milliseconds kMoment{500};

// Returns how many of these workers an empty machine has room for, at most `most`.
std::int64_t room_on(const Resources& machine, const Resources& worker, std::int64_t most) {
  ResourceLedger ledger(machine);
  std::int64_t count = 0;
  while (count < most && ledger.acquire(worker)) ++count;
  return count;
}

}  // namespace

Pool::Pool(const std::vector<PoolGroup>& groups) {
  for (const PoolGroup& group : groups) groups_.push_back({.limits = group});
}

bool Pool::follows_demand() const {
  return std::ranges::any_of(groups_, [](const Group& group) { return group.limits.least < group.limits.most; });
}

void Pool::set_demand(std::vector<Demand> demand) {
  demand_ = std::move(demand);
  std::erase_if(demand_, [](const Demand& one) { return one.workers <= 0; });
}

// Returns what a node of a group has: as the latest one, or as far as it is known, and else what the worker needs.
Resources Pool::node_for(const Group& group, const Resources& worker) {
  if (group.seen) return *group.seen;
  const PoolGroup& limits = group.limits;
  const bool is_unknown = limits.cpus == 0 && limits.gpus == 0;
  return {.cpus = limits.cpus > 0 ? limits.cpus : std::max(worker.cpus, 1.0),
          .gpus = is_unknown ? worker.gpus : limits.gpus,
          .accelerator_type = limits.accelerator_type,
          .labels = {{group_label, limits.name}}};
}

// Returns what is asked of such a node: of one that nobody has seen only what is known of it, and all of its CPUs for a
// worker that needs nothing else of that, since others may not fit beside it.
Resources Pool::asked_of(const Group& group, const Resources& worker) {
  Resources asked = worker;
  if (group.seen) return asked;
  asked.custom.clear();
  if (group.limits.accelerator_type.empty()) asked.accelerator_type.clear();
  std::erase_if(asked.labels, [](const auto& label) { return label.first != group_label; });
  if (asked.cpus == 0 && asked.gpus == 0) asked.cpus = node_for(group, worker).cpus;
  return asked;
}

bool Pool::has_room(const Group& group, const Resources& worker) {
  return ResourceLedger(node_for(group, worker)).is_free(asked_of(group, worker));
}

bool Pool::is_needed(const Group& group) const {
  return std::ranges::any_of(demand_, [&](const Demand& demand) { return has_room(group, demand.worker); });
}

bool Pool::may_ask() const {
  return std::ranges::any_of(groups_, [this](const Group& group) {
    return group.limits.least < group.limits.most && !group.is_given_up && is_needed(group);
  });
}

// Returns the group whose nodes for all of these workers cost least, and of those that cost the same the one that was
// named first; empty: no group with a free node has room for one of them.
std::optional<std::size_t> Pool::cheapest(const Resources& worker, std::int64_t workers,
                                          const std::vector<std::int64_t>& free) const {
  std::optional<std::size_t> found;
  double lowest = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (free[i] <= 0) continue;
    const std::int64_t each = room_on(node_for(groups_[i], worker), asked_of(groups_[i], worker), workers);
    if (each == 0) continue;
    const double cost = groups_[i].limits.price * static_cast<double>((workers + each - 1) / each);
    if (found && cost >= lowest) continue;
    found = i;
    lowest = cost;
  }
  return found;
}

// Returns the number of nodes of each group beyond those that are there: for what waits, the cheapest ones first, of
// each group so many at most.
std::vector<std::int64_t> Pool::needed(const std::vector<PoolNodes>& nodes) const {
  struct Rest {
    std::size_t group;
    ResourceLedger ledger;  // of a node that is not full
  };
  std::vector<std::int64_t> free(groups_.size());  // nodes that there may be beside those there and those needed
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (follows_demand(i) && !groups_[i].is_given_up) free[i] = groups_[i].limits.most - nodes[i].there;
  }
  std::vector<std::int64_t> needed(groups_.size());
  std::vector<Rest> rests;
  for (const auto& [worker, workers] : demand_) {
    std::int64_t left = workers;
    for (Rest& rest : rests) {
      const Resources asked = asked_of(groups_[rest.group], worker);
      while (left > 0 && rest.ledger.acquire(asked)) --left;
    }
    while (left > 0) {
      const std::optional<std::size_t> chosen = cheapest(worker, left, free);
      if (!chosen) break;
      const Resources node = node_for(groups_[*chosen], worker);
      const Resources asked = asked_of(groups_[*chosen], worker);
      const std::int64_t each = room_on(node, asked, left);
      const std::int64_t more = std::min(free[*chosen], (left + each - 1) / each);
      needed[*chosen] += more;
      free[*chosen] -= more;
      const std::int64_t placed = std::min(left, more * each);
      left -= placed;
      const std::int64_t on_last = placed - (more - 1) * each;
      ResourceLedger last(node);
      for (std::int64_t n = 0; n < on_last; ++n) last.acquire(asked);
      rests.push_back({*chosen, std::move(last)});
    }
  }
  return needed;
}

void Pool::consider(TimePoint time) { next_ = std::min(next_.value_or(time), time); }

std::vector<PoolOrder> Pool::decide(const std::vector<PoolNodes>& nodes, TimePoint now) {
  next_.reset();
  std::vector<PoolOrder> orders(groups_.size());
  if (!follows_demand()) return orders;
  const std::vector<std::int64_t> needed = this->needed(nodes);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const PoolNodes& present = nodes[i];
    if (!follows_demand(i)) continue;
    // Whatever drains has to go somewhere.
    const std::int64_t wanted =
        std::clamp(present.there + std::max(needed[i], present.leaving), group.limits.least, group.limits.most);
    const std::int64_t missing =
        group.is_given_up ? 0 : std::max<std::int64_t>(wanted - present.there - present.coming, 0);
    const std::int64_t surplus =
        std::min(std::max<std::int64_t>(present.there + present.coming - wanted, 0), present.coming);
    const auto lasts = [&](bool is_so, std::optional<TimePoint>& since) {
      if (!is_so) since.reset();
      if (is_so && !since) since = now;
      if (is_so && now - *since < kMoment) consider(*since + kMoment);
      return is_so && now - *since >= kMoment;
    };
    if (lasts(missing > 0, group.short_since)) orders[i].request = missing;
    if (lasts(surplus > 0, group.long_since)) orders[i].withdraw = surplus;
    if (is_needed(group)) continue;  // nodes that wait for others, and will be used together
    std::int64_t spare = present.there - group.limits.least;
    for (const auto& [id, since] : present.idle) {
      if (spare <= 0) break;
      if (now - since < group.limits.linger) {
        consider(since + group.limits.linger);
        continue;
      }
      orders[i].give_back.push_back(id);
      --spare;
    }
  }
  return orders;
}

}  // namespace cadre::engine::cluster
