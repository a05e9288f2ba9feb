#include "resources/resource_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cadre/value.h"
#include "resources/gpu_kinds.h"
#include "resources/machine_labels.h"

namespace cadre::resources {
namespace {

double checked(double amount, double most) {
  if (!(amount >= 0 && amount <= most))
    throw std::invalid_argument("no machine has " + to_json(amount) + " of a resource");
  return amount;
}

Resources checked(Resources total) {
  checked(total.cpus, kMostOfAResource);
  checked(total.gpus, kMostGpus);
  for (const auto& [name, amount] : total.custom) checked(amount, kMostOfAResource);
  return total;
}

Amounts amounts_without_gpus(const Resources& resources) {
  Amounts amounts = amounts_of(resources);
  amounts.erase("gpus");
  return amounts;
}

}  // namespace

ResourceLedger::ResourceLedger(const Resources& total)
    : machine_(checked(total)),
      total_(amounts_without_gpus(total)),
      gpu_kinds_(kinds_of_gpus(total)),
      total_gpus_(units(total.gpus)) {
  for (const auto& [name, amount] : total_) used_[name] = 0;
  for (std::int64_t rest = total_gpus_; rest > 0; rest -= kUnitsPerWhole)
    free_gpus_.push_back(std::min(rest, kUnitsPerWhole));
}

bool ResourceLedger::is_wanted(const Resources& wanted, int gpu) const {
  return wanted.accelerator_type.empty() || wanted.accelerator_type == gpu_kinds_.at(static_cast<std::size_t>(gpu));
}

std::optional<Gpus> ResourceLedger::place(const Resources& wanted, const std::optional<Gpus>& only) const {
  const std::int64_t amount = units(wanted.gpus);
  if (amount <= 0) return Gpus();
  const std::int64_t share = std::min(amount, kUnitsPerWhole);  // units per GPU
  const auto count = static_cast<std::size_t>((amount + kUnitsPerWhole - 1) / kUnitsPerWhole);
  Gpus fitting = only.value_or(Gpus(free_gpus_.size()));
  if (!only) std::iota(fitting.begin(), fitting.end(), 0);
  const auto free = [this](int gpu) { return free_gpus_.at(static_cast<std::size_t>(gpu)); };
  std::erase_if(fitting, [&](int gpu) { return free(gpu) < share || !is_wanted(wanted, gpu); });
  if (fitting.size() < count) return std::nullopt;
  std::ranges::stable_sort(fitting, {}, free);
  fitting.resize(count);
  std::ranges::sort(fitting);
  return fitting;
}

bool ResourceLedger::is_free(const Resources& wanted, const std::optional<Gpus>& only) const {
  if (!mismatch(machine_, wanted).empty()) return false;
  for (const auto& [name, amount] : amounts_without_gpus(wanted)) {
    const auto total = total_.find(name);
    if (amount > 0 && (total == total_.end() || used_.at(name) + amount > total->second)) return false;
  }
  return place(wanted, only).has_value();
}

std::optional<Gpus> ResourceLedger::acquire(const Resources& wanted, const std::optional<Gpus>& only) {
  if (!is_free(wanted, only)) return std::nullopt;
  Gpus gpus = *place(wanted, only);
  occupy(wanted, gpus);
  return gpus;
}

void ResourceLedger::occupy(const Resources& held, const Gpus& gpus) {
  for (const auto& [name, amount] : amounts_without_gpus(held)) used_[name] += amount;
  for (const int gpu : gpus) free_gpus_.at(static_cast<std::size_t>(gpu)) -= std::min(units(held.gpus), kUnitsPerWhole);
}

void ResourceLedger::release(const Resources& held, const Gpus& gpus) {
  for (const auto& [name, amount] : amounts_without_gpus(held)) used_[name] -= amount;
  for (const int gpu : gpus) free_gpus_.at(static_cast<std::size_t>(gpu)) += std::min(units(held.gpus), kUnitsPerWhole);
}

std::string ResourceLedger::shortage(const Resources& wanted, std::string_view has) const {
  const Amounts amounts = amounts_of(wanted);
  const std::string label = mismatch(machine_, wanted);
  Amounts totals = total_;
  totals["gpus"] = total_gpus_;
  std::string kind;
  if (label.empty() && !wanted.accelerator_type.empty() && machine_.accelerator_type != wanted.accelerator_type) {
    totals["gpus"] = kUnitsPerWhole * std::ranges::count(gpu_kinds_, wanted.accelerator_type);
    kind = " of kind " + wanted.accelerator_type;
  }
  std::vector<std::string> missing;
  for (const auto& [name, amount] : amounts) {
    const auto total = totals.find(name);
    const std::int64_t there = total == totals.end() ? 0 : total->second;
    if (amount > there)
      missing.push_back(fmt::format("{:g} {}{} ({} {:g})", amount_of(amount), name, name == "gpus" ? kind : "", has,
                                    amount_of(there)));
  }
  if (!label.empty()) missing.push_back(label);
  return fmt::format("{}", fmt::join(missing, ", "));
}

Amounts ResourceLedger::used() const {
  Amounts used = used_;
  used["gpus"] = total_gpus_ - std::accumulate(free_gpus_.begin(), free_gpus_.end(), std::int64_t{0});
  return used;
}

Amounts ResourceLedger::free() const {
  Amounts free = total_;
  for (auto& [name, amount] : free) amount -= used_.at(name);
  free["gpus"] = std::accumulate(free_gpus_.begin(), free_gpus_.end(), std::int64_t{0});
  return free;
}

Amounts ResourceLedger::total() const {
  Amounts total = total_;
  total["gpus"] = total_gpus_;
  return total;
}

std::string usage_text(const Amounts& used, const Amounts& total) {
  std::string text = fmt::format("{:g}/{:g} CPUs, {:g}/{:g} GPUs", amount_of(used.at("cpus")),
                                 amount_of(total.at("cpus")), amount_of(used.at("gpus")), amount_of(total.at("gpus")));
  for (const auto& [name, amount] : total) {
    if (name != "cpus" && name != "gpus")
      text += fmt::format(", {:g}/{:g} {}", amount_of(used.at(name)), amount_of(amount), name);
  }
  return text;
}

}  // namespace cadre::resources
