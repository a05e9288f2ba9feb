#include "run/resource_ledger.h"

#include <fmt/format.h>

#include <cmath>

namespace cadre::run {
namespace {

constexpr double kUnitsPerWhole = 10'000;

double whole(std::int64_t units) { return static_cast<double>(units) / kUnitsPerWhole; }

}  // namespace

ResourceLedger::ResourceLedger(const Resources& total) : total_(amounts_of(total)) {
  for (const auto& [name, amount] : total_) used_[name] = 0;
}

ResourceLedger::Amounts ResourceLedger::amounts_of(const Resources& resources) {
  const auto units = [](double amount) { return static_cast<std::int64_t>(std::llround(amount * kUnitsPerWhole)); };
  Amounts amounts{{"cpus", units(resources.cpus)}, {"gpus", units(resources.gpus)}};
  for (const auto& [name, amount] : resources.custom) amounts[name] = units(amount);
  return amounts;
}

bool ResourceLedger::acquire(const Resources& wanted) {
  const Amounts amounts = amounts_of(wanted);
  for (const auto& [name, amount] : amounts) {
    const auto total = total_.find(name);
    if (amount > 0 && (total == total_.end() || used_[name] + amount > total->second)) return false;
  }
  for (const auto& [name, amount] : amounts) used_[name] += amount;
  return true;
}

void ResourceLedger::release(const Resources& held) {
  for (const auto& [name, amount] : amounts_of(held)) used_[name] -= amount;
}

std::string ResourceLedger::shortage(const Resources& wanted) const {
  for (const auto& [name, amount] : amounts_of(wanted)) {
    const auto total = total_.find(name);
    const std::int64_t there = total == total_.end() ? 0 : total->second;
    if (amount > there) return fmt::format("{:g} {} (there are {:g})", whole(amount), name, whole(there));
  }
  return {};
}

std::string ResourceLedger::usage() const {
  std::string text = fmt::format("{:g}/{:g} CPUs, {:g}/{:g} GPUs", whole(used_.at("cpus")), whole(total_.at("cpus")),
                                 whole(used_.at("gpus")), whole(total_.at("gpus")));
  for (const auto& [name, amount] : total_) {
    if (name != "cpus" && name != "gpus")
      text += fmt::format(", {:g}/{:g} {}", whole(used_.at(name)), whole(amount), name);
  }
  return text;
}

}  // namespace cadre::run
