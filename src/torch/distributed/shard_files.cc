#include "torch/distributed/shard_files.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cadre/error.h"
#include "torch/faults.h"
#include "torch/pt_file.h"

namespace cadre::distributed {
namespace {
namespace fs = std::filesystem;

std::string file_name(const std::string& name, int rank, int ranks) {
  return name + "_" + std::to_string(rank) + "_of_" + std::to_string(ranks) + ".pt";
}

// Returns the rank and the number of ranks in a file's name.
std::optional<std::pair<int, int>> parse_file_name(std::string_view file, std::string_view name) {
  constexpr std::string_view middle = "_of_";
  constexpr std::string_view end = ".pt";
  const auto number = [&file]() -> std::optional<int> {
    int value = 0;
    const auto [rest, error] = std::from_chars(file.data(), file.data() + file.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    file.remove_prefix(static_cast<std::size_t>(rest - file.data()));
    return value;
  };
  if (!file.starts_with(name) || !file.substr(name.size()).starts_with('_')) return std::nullopt;
  file.remove_prefix(name.size() + 1);
  const auto rank = number();
  if (!rank || !file.starts_with(middle)) return std::nullopt;
  file.remove_prefix(middle.size());
  const auto ranks = number();
  if (!ranks || *rank >= *ranks || file != end) return std::nullopt;
  return std::pair(*rank, *ranks);
}

}  // namespace

void Shard::refuse(const std::string& why) const { throw InvalidArgument("cannot load " + file.string() + ": " + why); }

const pt::Value& Shard::at(const char* name) const {
  const pt::Value* const entry = content.find(name);
  if (entry == nullptr) refuse(std::string("it has no \"") + name + "\"");
  return *entry;
}

const pt::Value& Shard::at(const char* name, const char* inner_name) const {
  const pt::Value* const inner = at(name).find(inner_name);
  if (inner == nullptr) refuse(std::string("its \"") + name + "\" has no \"" + inner_name + "\"");
  return *inner;
}

fs::path shard_file(const fs::path& directory, const std::string& name, int rank, int ranks) {
  return directory / file_name(name, rank, ranks);
}

std::vector<fs::path> find_shards(const fs::path& directory, const std::string& name, const std::string& what) {
  std::map<int, std::set<int>> ranks_by_number;
  std::error_code unusable;
  for (const auto& entry : fs::directory_iterator(directory, unusable)) {
    if (const auto found = parse_file_name(entry.path().filename().string(), name))
      ranks_by_number[found->second].insert(found->first);
  }
  const std::string whole = what + ", \"" + name + "\", in " + directory.string();
  if (ranks_by_number.empty())
    throw NotFound("there is nothing of " + whole + ": a file " + file_name(name, 0, 2) + " for example");
  const auto& [number, ranks] = *ranks_by_number.begin();
  if (ranks_by_number.size() > 1) {
    throw InvalidArgument("files of different numbers of ranks are there of " + whole + ": of " +
                          std::to_string(number) + " and of " + std::to_string(ranks_by_number.rbegin()->first));
  }
  pt::Faults faults;
  std::vector<fs::path> files;
  for (int rank = 0; rank < number; ++rank) {
    if (!ranks.contains(rank)) faults.add(file_name(name, rank, number) + " is missing");
    files.push_back(shard_file(directory, name, rank, number));
  }
  faults.throw_if_any("cannot load " + whole);
  return files;
}

Shard read_shard(const fs::path& file) { return {file, pt::read_file(file)}; }

const pt::Value* find_number(const pt::Value& dict, std::int64_t number) {
  const pt::Container* const entries = dict.dict();
  if (entries == nullptr) return nullptr;
  for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
    const auto* const key = entries->items[i].get_if<std::int64_t>();
    if (key != nullptr && *key == number) return &entries->items[i + 1];
  }
  return nullptr;
}

pt::Value group_options(const Shard& shard, std::size_t group, std::vector<pt::Value> parameters) {
  const pt::Container* const groups = shard.at("optimizer", "param_groups").list();
  const pt::Container* const options =
      groups == nullptr || group >= groups->items.size() ? nullptr : groups->items[group].dict();
  if (options == nullptr) shard.refuse("it has no options of group " + std::to_string(group));
  pt::DictBuilder changed;
  for (std::size_t i = 0; i + 1 < options->items.size(); i += 2) {
    const auto* const key = options->items[i].get_if<std::string>();
    if (key != nullptr && *key == "params") continue;
    changed.add(options->items[i], options->items[i + 1]);
  }
  changed.add("params", pt::make_container(pt::Container::Kind::list, std::move(parameters)));
  return changed.take();
}

}  // namespace cadre::distributed
