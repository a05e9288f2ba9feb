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

namespace cadre::resources {
namespace {

// Returns the devices that this process may use, by number or UUID; nothing if all. CUDA stops reading at the first
// invalid one, such as -1.
std::optional<std::vector<std::string>> allowed_devices() {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return std::nullopt;
  std::vector<std::string> devices;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::string device(rest.substr(0, comma));
    std::erase_if(device, [](unsigned char c) { return std::isspace(c) != 0; });
    if (device.empty() || device.front() == '-') break;
    devices.push_back(std::move(device));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return devices;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns the kind from a GPU's information file of the driver, in which a line is "Model: \t\t NVIDIA H100 80GB HBM3".
std::string kind_of(const std::filesystem::path& information) {
  constexpr std::string_view model = "Model:";
  constexpr std::string_view separators = " \t-";
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(model)) continue;
    std::string_view rest = std::string_view(line).substr(model.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(separators), rest.size()));
    for (std::string_view words = rest; !words.empty();) {
      const std::string_view word = words.substr(0, words.find_first_of(separators));
      if (std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; })) return std::string(word);
      words.remove_prefix(std::min(word.size() + 1, words.size()));
    }
    return std::string(rest);
  }
  return {};
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

std::string accelerator_type(const std::filesystem::path& driver) {
  std::set<std::string> kinds;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator(driver / "gpus", none))
    kinds.insert(kind_of(gpu.path() / "information"));
  return kinds.size() == 1 ? *kinds.begin() : "";
}

std::string visible_devices(const std::vector<int>& gpus) {
  const auto allowed = allowed_devices();
  std::string text;
  for (const int gpu : gpus) {
    const auto index = static_cast<std::size_t>(gpu);
    text += (text.empty() ? "" : ",") + (allowed && index < allowed->size() ? (*allowed)[index] : std::to_string(gpu));
  }
  return text;
}

}  // namespace cadre::resources
