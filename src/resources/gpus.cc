#include "resources/gpus.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "resources/gpu_kinds.h"

namespace cadre::resources {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_device(std::string_view name) {
  return is_number(name) || name.starts_with("GPU-") || name.starts_with("MIG-");
}

// Returns the devices that this process may use, by number or UUID; nothing if all. CUDA stops reading at the first
// invalid one, such as -1, or NoDevFiles as Slurm says it.
std::optional<std::vector<std::string>> allowed_devices() {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return std::nullopt;
  std::vector<std::string> devices;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::string device(rest.substr(0, comma));
    std::erase_if(device, [](unsigned char c) { return std::isspace(c) != 0; });
    if (!is_device(device)) break;
    devices.push_back(std::move(device));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return devices;
}

std::string kind_of_model(std::string_view model) {
  constexpr std::string_view separators = " \t-";
  for (std::string_view words = model; !words.empty();) {
    const std::string_view word = words.substr(0, words.find_first_of(separators));
    if (std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; })) return std::string(word);
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return std::string(model);
}

struct Gpu {
  std::string kind = {};
  std::string uuid = {};
  std::string minor = {};  // number of its device file
};

// Reads a GPU's information file of the driver, in which a line is "Model: \t\t NVIDIA H100 80GB HBM3".
Gpu read_information(const std::filesystem::path& information) {
  Gpu gpu;
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    const auto colon = text.find(':');
    if (colon == text.npos) continue;
    std::string_view value = text.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    const std::string_view key = text.substr(0, colon);
    if (key == "Model") gpu.kind = kind_of_model(value);
    if (key == "GPU UUID") gpu.uuid = value;
    if (key == "Device Minor") gpu.minor = value;
  }
  return gpu;
}

// Returns the GPUs whose device files this process has, in the order of their places on the bus.
std::vector<Gpu> gpus_of_driver(const GpuFiles& files) {
  std::set<std::filesystem::path> places;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator(files.driver / "gpus", none)) places.insert(gpu.path());
  std::vector<Gpu> gpus;
  for (const std::filesystem::path& place : places) {
    Gpu gpu = read_information(place / "information");
    if (gpu.minor.empty() || std::filesystem::exists(files.devices / ("nvidia" + gpu.minor), none))
      gpus.push_back(std::move(gpu));
  }
  return gpus;
}

bool have_one_kind(const std::vector<Gpu>& gpus) {
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return gpu.kind == gpus.front().kind; });
}

// Returns the GPU that an entry of CUDA_VISIBLE_DEVICES names, by the beginning of its UUID or by its number; nullptr
// if that cannot be told.
const Gpu* find_gpu(const std::vector<Gpu>& gpus, const std::string& name) {
  if (!is_number(name)) {
    const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) { return gpu.uuid.starts_with(name); });
    return found == gpus.end() ? nullptr : &*found;
  }
  const char* const order = std::getenv("CUDA_DEVICE_ORDER");
  const bool is_place = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  const std::size_t number = name.size() < 6 ? std::stoul(name) : gpus.size();
  return is_place && number < gpus.size() ? &gpus[number] : nullptr;
}

}  // namespace

int count_gpus() {
  if (const auto allowed = allowed_devices()) return static_cast<int>(allowed->size());
  constexpr std::string_view prefix = "nvidia";  // /dev/nvidia0, /dev/nvidia1, …; other devices end in words
  int count = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix) && is_number(std::string_view(name).substr(prefix.size()))) ++count;
  }
  return count;
}

std::string accelerator_types(const GpuFiles& files) {
  const std::vector<Gpu> gpus = gpus_of_driver(files);
  if (gpus.empty()) return {};
  if (have_one_kind(gpus)) return gpus.front().kind;
  std::vector<std::string> kinds;
  if (const auto allowed = allowed_devices()) {
    for (const std::string& name : *allowed) {
      const Gpu* const gpu = find_gpu(gpus, name);
      if (gpu == nullptr) return {};
      kinds.push_back(gpu->kind);
    }
  } else {
    for (const Gpu& gpu : gpus) kinds.push_back(gpu.kind);
  }
  return join_kinds(kinds);
}

std::vector<std::string> uuids_of_several_kinds(const GpuFiles& files) {
  std::vector<std::string> uuids;
  const std::vector<Gpu> gpus = gpus_of_driver(files);
  if (gpus.empty() || have_one_kind(gpus)) return uuids;
  for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

std::string visible_devices(const std::vector<int>& gpus) {
  static const std::vector<std::string> uuids = uuids_of_several_kinds();
  const std::vector<std::string> names = allowed_devices().value_or(uuids);
  std::string text;
  for (const int gpu : gpus) {
    const auto index = static_cast<std::size_t>(gpu);
    text += (text.empty() ? "" : ",") + (index < names.size() ? names[index] : std::to_string(gpu));
  }
  return text;
}

std::string visible_devices(const std::vector<int>& gpus, const std::vector<Node>& nodes, NodeId node) {
  const auto found = std::ranges::find(nodes, node, &Node::id);
  if (found == nodes.end() || found->gpu_names.empty()) return visible_devices(gpus);
  std::string text;
  for (const int gpu : gpus) text += (text.empty() ? "" : ",") + found->gpu_names.at(static_cast<std::size_t>(gpu));
  return text;
}

std::optional<std::string> visible_devices(const Resources& machine, const Place& place,
                                           const std::vector<Node>& nodes) {
  if (!(machine.gpus > 0)) return std::nullopt;
  return visible_devices(place.gpus, nodes, place.node);
}

std::vector<std::string> gpu_names(double gpus) {
  std::vector<std::string> names;
  for (int gpu = 0; gpu < gpus; ++gpu) names.push_back(visible_devices({gpu}));
  return names;
}

}  // namespace cadre::resources
