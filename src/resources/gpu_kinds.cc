#include "resources/gpu_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace cadre::resources {
namespace {

std::size_t count_of(double gpus) { return static_cast<std::size_t>(std::ceil(gpus)); }

std::vector<std::string> split(std::string_view kinds) {
  std::vector<std::string> parts;
  for (;;) {
    const auto comma = kinds.find(',');
    parts.emplace_back(kinds.substr(0, comma));
    if (comma == kinds.npos) return parts;
    kinds.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string join_kinds(const std::vector<std::string>& kinds) {
  if (kinds.empty()) return {};
  if (std::ranges::count(kinds, kinds.front()) == std::ssize(kinds)) return kinds.front();
  return fmt::format("{}", fmt::join(kinds, ","));
}

std::vector<std::string> kinds_of_gpus(const Resources& machine) {
  std::vector<std::string> kinds = split(machine.accelerator_type);
  kinds.resize(count_of(machine.gpus), kinds.size() == 1 ? std::string(kinds.front()) : std::string());
  return kinds;
}

std::string fault_of_kinds(const Resources& machine) {
  const std::vector<std::string> kinds = split(machine.accelerator_type);
  if (kinds.size() == 1) return {};
  if (std::ranges::count(kinds, "") > 0)
    return fmt::format("\"{}\" has a kind without a name", machine.accelerator_type);
  if (kinds.size() == count_of(machine.gpus)) return {};
  return fmt::format("\"{}\" has {} kinds, and there are {:g} GPUs: name one kind, or that of each GPU",
                     machine.accelerator_type, kinds.size(), machine.gpus);
}

bool has_kind(const Resources& machine, const std::string& kind) {
  return std::ranges::count(split(machine.accelerator_type), kind) > 0;
}

Resources with_kinds(Resources part, const Resources& machine, const std::vector<int>& gpus) {
  const std::vector<std::string> kinds = kinds_of_gpus(machine);
  std::vector<std::string> own;
  for (const int gpu : gpus) {
    if (own.size() < count_of(part.gpus)) own.push_back(kinds.at(static_cast<std::size_t>(gpu)));
  }
  part.accelerator_type = join_kinds(own);
  return part;
}

}  // namespace cadre::resources
