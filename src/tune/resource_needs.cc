#include "tune/resource_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "resources/amounts.h"
#include "resources/machine_labels.h"
#include "tune/functions.h"

namespace cadre {

namespace tune {
namespace {

bool is_empty(const Resources& bundle) {
  return std::ranges::all_of(resources::amounts_of(bundle), [](const auto& amount) { return amount.second == 0; });
}

// The first bundle is the trainable's own worker; the others are for workers that it starts.
Needs to_needs(const PlacementGroup& group) {
  Needs needs{.total = group.required_resources(), .own_cpus = group.bundles.front().cpus};
  if (group.bundles.size() < 2) return needs;
  needs.of_workers = PlacementGroup{.bundles = {group.bundles.begin() + 1, group.bundles.end()}}.required_resources();
  const auto first = group.bundles.begin() + (is_empty(group.bundles.front()) ? 1 : 0);
  needs.bundles.assign(first, group.bundles.end());
  needs.first_is_own = first == group.bundles.begin();
  needs.strategy = group.strategy;
  return needs;
}

}  // namespace

ResourceNeeds::ResourceNeeds(const Trainable& trainable)
    : fixed_(to_needs(placement_group(trainable))), function_(trainable.resource_function) {}

Needs ResourceNeeds::operator()(const Config& config) const {
  if (!by_config()) return fixed_;
  const PlacementGroup group = call(function_, config);
  Faults faults;
  check_resources(group, faults);
  faults.throw_if_any("a trial");
  return to_needs(group);
}

Needs with_total(const Needs& needs, const Resources& total) {
  resources::Amounts added = resources::amounts_of(total);
  for (const auto& [name, amount] : resources::amounts_of(needs.total)) added[name] -= amount;
  const auto plus = [&](const Resources& part) {
    resources::Amounts sum = resources::amounts_of(part);
    for (const auto& [name, amount] : added) sum[name] += amount;
    return resources::with_amounts(part, sum);
  };
  Needs changed{.total = plus(needs.total), .own_cpus = needs.own_cpus, .of_workers = needs.of_workers};
  if (changed.of_workers) {
    changed.of_workers = plus(*needs.of_workers);
    changed.bundles = needs.bundles;
    changed.first_is_own = needs.first_is_own;
    changed.strategy = needs.strategy;
    if (std::ranges::any_of(added, [](const auto& one) { return one.second != 0; }))
      changed.bundles.push_back(resources::with_amounts({}, added));
  } else {
    changed.own_cpus = changed.total.cpus;
  }
  Faults faults;
  check_resources({.bundles = {changed.total}}, faults);
  faults.unless(std::ranges::none_of(added, [](const auto& one) { return one.second < 0; }), "resources",
                "they are less than its trainable and its config say");
  faults.throw_if_any("what the scheduler gives to a trial");
  return changed;
}

void check_resources(const PlacementGroup& group, Faults& faults) {
  const auto check = [&](const std::string& name, double amount) {
    faults.unless(std::isfinite(amount) && amount >= 0, "resources " + name,
                  fmt::format("the amount {} must be 0 or more", amount));
  };
  const auto check_gpus = [&](const std::string& option, double gpus) {
    faults.unless(gpus <= 1 || gpus == std::floor(gpus), option,
                  fmt::format("it is {:g}; a trial has a share of one GPU, or whole ones", gpus));
  };
  Resources selected;
  for (const Resources& bundle : group.bundles) {
    const std::string fault = resources::fault_of_selectors(bundle);
    faults.unless(fault.empty(), "resources labels", fault);
    const std::string contradiction = resources::add_selectors(selected, bundle);
    faults.unless(contradiction.empty(), "resources bundles", contradiction);
    check("cpus", bundle.cpus);
    check("gpus", bundle.gpus);
    check_gpus("resources gpus", bundle.gpus);
    for (const auto& [name, amount] : bundle.custom) check("\"" + name + "\"", amount);
  }
  const Resources sum = group.required_resources();
  if (group.bundles.size() > 1) check_gpus("resources gpus of all bundles", sum.gpus);
  const bool any = sum.cpus > 0 || sum.gpus > 0 ||
                   std::ranges::any_of(sum.custom, [](const auto& entry) { return entry.second > 0; });
  faults.unless(any, "resources", "a trial needs some amount of some resource");
}

PlacementGroup placement_group(const Trainable& trainable) {
  PlacementGroup group{.bundles = {trainable.resources}, .strategy = trainable.strategy};
  group.bundles.insert(group.bundles.end(), trainable.more_bundles.begin(), trainable.more_bundles.end());
  return group;
}

Trainable with_resources(Trainable trainable, Resources resources) {
  return with_resources(std::move(trainable), PlacementGroup{.bundles = {std::move(resources)}});
}

Trainable with_resources(Trainable trainable, PlacementGroup group) {
  trainable.resource_function = {};
  trainable.strategy = group.strategy;
  trainable.resources = group.bundles.empty() ? Resources{.cpus = 0} : group.bundles.front();
  trainable.more_bundles.clear();
  if (!group.bundles.empty()) trainable.more_bundles.assign(group.bundles.begin() + 1, group.bundles.end());
  return trainable;
}

Trainable with_resources(Trainable trainable, ResourceFunction function) {
  trainable = with_resources(std::move(trainable), Resources{});
  trainable.resource_function = std::move(function);
  return trainable;
}

}  // namespace tune
}  // namespace cadre
