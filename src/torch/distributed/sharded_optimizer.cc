#include "cadre/train_torch/sharded_optimizer.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "cadre/error.h"
#include "torch/distributed/collectives.h"
#include "torch/distributed/group.h"
#include "torch/faults.h"
#include "torch/optimizer_state.h"
#include "torch/pickle_value.h"
#include "torch/pt_file.h"

namespace cadre::train::detail {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kBucketBytes = std::size_t{25} << 20;
constexpr std::size_t kBucketsAtOnce = 2;

// Returns the rank of each parameter: the largest first, each to the rank that has least.
std::vector<std::vector<int>> divide(const std::vector<std::vector<torch::Tensor>>& groups, int ranks) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  std::vector<std::vector<int>> owners;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    owners.emplace_back(groups[group].size());
    for (std::size_t i = 0; i < groups[group].size(); ++i) places.emplace_back(group, i);
  }
  const auto size_at = [&](const auto& place) { return groups[place.first][place.second].numel(); };
  std::ranges::stable_sort(places, std::ranges::greater(), size_at);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks));
  for (const auto& place : places) {
    const auto least = std::ranges::min_element(sizes);
    *least += size_at(place);
    owners[place.first][place.second] = static_cast<int>(least - sizes.begin());
  }
  return owners;
}

torch::Tensor flatten_all(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& tensor : tensors) flat.push_back(tensor.detach().flatten());
  return torch::cat(flat);
}

void unflatten_into(const torch::Tensor& flat, const std::vector<torch::Tensor>& tensors) {
  std::int64_t begin = 0;
  for (const torch::Tensor& tensor : tensors) {
    tensor.detach().copy_(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

// ---- Files

// The file of one rank.
struct Shard {
  fs::path file;
  pt::Value content;
};

std::string shard_name(const std::string& name, int rank, int ranks) {
  return name + "_" + std::to_string(rank) + "_of_" + std::to_string(ranks) + ".pt";
}

// Returns the rank and the number of ranks in a file's name.
std::optional<std::pair<int, int>> parse_shard_name(std::string_view file, std::string_view name) {
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
  if (!ranks || file != end) return std::nullopt;
  return std::pair(*rank, *ranks);
}

// Reads the files of all ranks.
std::vector<Shard> read_shards(const fs::path& directory, const std::string& name) {
  std::map<int, std::set<int>> ranks_by_number;
  std::error_code unusable;
  for (const auto& entry : fs::directory_iterator(directory, unusable)) {
    if (const auto found = parse_shard_name(entry.path().filename().string(), name))
      ranks_by_number[found->second].insert(found->first);
  }
  const std::string what = "the state of an optimizer, \"" + name + "\", in " + directory.string();
  if (ranks_by_number.empty())
    throw NotFound("there is nothing of " + what + ": a file " + shard_name(name, 0, 2) + " for example");
  const auto& [number, ranks] = *ranks_by_number.begin();
  if (ranks_by_number.size() > 1) {
    throw InvalidArgument("files of different numbers of ranks are there of " + what + ": of " +
                          std::to_string(number) + " and of " + std::to_string(ranks_by_number.rbegin()->first));
  }
  pt::Faults faults;
  for (int rank = 0; rank < number; ++rank) {
    if (!ranks.contains(rank)) faults.add(shard_name(name, rank, number) + " is missing");
  }
  faults.throw_if_any("cannot load " + what);
  std::vector<Shard> shards;
  for (int rank = 0; rank < number; ++rank) {
    const fs::path file = directory / shard_name(name, rank, number);
    shards.push_back({file, pt::read_file(file)});
  }
  return shards;
}

[[noreturn]] void refuse(const Shard& shard, const std::string& why) {
  throw InvalidArgument("cannot load " + shard.file.string() + ": " + why);
}

// Says in which file the state of a parameter is, and under which number there.
struct StatePlace {
  const Shard* shard = nullptr;
  std::int64_t number = 0;
};

// Returns the places by group and parameter.
std::vector<std::vector<StatePlace>> find_places(const std::vector<Shard>& shards,
                                                 const std::vector<std::vector<torch::Tensor>>& groups) {
  std::vector<std::vector<StatePlace>> places;
  for (const auto& group : groups) places.emplace_back(group.size());
  for (const Shard& shard : shards) {
    const pt::Value* const parameters = shard.content.find("parameters");
    const pt::Container* const by_group = parameters == nullptr ? nullptr : parameters->list();
    if (by_group == nullptr) refuse(shard, "it is not the part of an optimizer's state that save_shard writes");
    if (by_group->items.size() != groups.size()) {
      refuse(shard, "it has " + std::to_string(by_group->items.size()) + " groups of parameters, and the optimizer " +
                        std::to_string(groups.size()));
    }
    std::int64_t number = 0;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const pt::Container* const indices = by_group->items[group].list();
      if (indices == nullptr) refuse(shard, "its parameters are no lists");
      for (const pt::Value& item : indices->items) {
        const auto* const index = item.get_if<std::int64_t>();
        if (index == nullptr || *index < 0 || static_cast<std::size_t>(*index) >= groups[group].size()) {
          refuse(shard, "it has parameters that group " + std::to_string(group) + " of the optimizer, with " +
                            std::to_string(groups[group].size()) + ", has not");
        }
        StatePlace& place = places[group][static_cast<std::size_t>(*index)];
        if (place.shard != nullptr) refuse(shard, "it does not belong to " + place.shard->file.string());
        place = {.shard = &shard, .number = number++};
      }
    }
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::size_t i = 0; i < groups[group].size(); ++i) {
      if (places[group][i].shard == nullptr) {
        refuse(shards.front(),
               "neither it nor another part has parameter " + std::to_string(i) + " of group " + std::to_string(group));
      }
    }
  }
  return places;
}

// Returns the value at a whole number in a dictionary.
const pt::Value* find_number(const pt::Value& dict, std::int64_t number) {
  const pt::Container* const entries = dict.dict();
  if (entries == nullptr) return nullptr;
  for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
    const auto* const key = entries->items[i].get_if<std::int64_t>();
    if (key != nullptr && *key == number) return &entries->items[i + 1];
  }
  return nullptr;
}

const pt::Value& part_of(const Shard& shard, const char* name) {
  const pt::Value* const optimizer = shard.content.find("optimizer");
  const pt::Value* const part = optimizer == nullptr ? nullptr : optimizer->find(name);
  if (part == nullptr) refuse(shard, std::string("it has no \"optimizer\" with a \"") + name + "\"");
  return *part;
}

// Returns a group's options, with other parameters.
pt::Value with_parameters(const Shard& shard, std::size_t group, std::vector<pt::Value> parameters) {
  const pt::Container* const groups = part_of(shard, "param_groups").list();
  const pt::Container* const options =
      groups == nullptr || group >= groups->items.size() ? nullptr : groups->items[group].dict();
  if (options == nullptr) refuse(shard, "it has no options of group " + std::to_string(group));
  pt::DictBuilder changed;
  for (std::size_t i = 0; i + 1 < options->items.size(); i += 2) {
    const auto* const key = options->items[i].get_if<std::string>();
    if (key != nullptr && *key == "params") continue;
    changed.add(options->items[i], options->items[i + 1]);
  }
  changed.add("params", pt::make_container(pt::Container::Kind::list, std::move(parameters)));
  return changed.take();
}

}  // namespace

std::vector<std::vector<torch::Tensor>> parameters_of(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  std::vector<std::vector<torch::Tensor>> parameters;
  for (const auto& group : groups) parameters.push_back(group.params());
  return parameters;
}

ShardedParameters::ShardedParameters(std::vector<std::vector<torch::Tensor>> groups) : groups_(std::move(groups)) {
  std::set<const void*> seen;
  pt::Faults faults;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (std::size_t i = 0; i < groups_[group].size(); ++i) {
      const torch::Tensor& tensor = groups_[group][i];
      const std::string what = "parameter " + std::to_string(i) + " of group " + std::to_string(group) + " is ";
      if (!tensor.defined()) {
        faults.add(what + "undefined");
      } else if (!seen.insert(tensor.unsafeGetTensorImpl()).second) {
        faults.add(what + "there already");
      }
    }
  }
  if (seen.empty()) faults.add("there are no parameters");
  faults.throw_if_any("prepare_optimizer");

  const int ranks = distributed::current_group().world_size;
  owners_ = divide(groups_, ranks);
  for (int owner = 0; owner < ranks; ++owner) {
    std::size_t bytes = 0;
    bool is_open = false;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      for (std::size_t i = 0; i < groups_[group].size(); ++i) {
        const torch::Tensor& tensor = groups_[group][i];
        if (owners_[group][i] != owner || tensor.numel() == 0) continue;
        const bool fits = is_open && bytes + tensor.nbytes() <= kBucketBytes &&
                          buckets_.back().tensors.front().scalar_type() == tensor.scalar_type() &&
                          buckets_.back().tensors.front().device() == tensor.device();
        if (!fits) {
          buckets_.push_back({.owner = owner});
          bytes = 0;
          is_open = true;
        }
        buckets_.back().tensors.push_back(tensor);
        bytes += tensor.nbytes();
      }
    }
  }
}

std::vector<torch::Tensor> ShardedParameters::whole() const {
  std::vector<torch::Tensor> all;
  for (const auto& group : groups_) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<torch::Tensor> ShardedParameters::own(std::size_t group) const {
  const int rank = distributed::current_group().rank;
  std::vector<torch::Tensor> tensors;
  for (std::size_t i = 0; i < groups_[group].size(); ++i) {
    if (owners_[group][i] == rank) tensors.push_back(groups_[group][i]);
  }
  return tensors;
}

void ShardedParameters::exchange() const {
  const distributed::Group group = distributed::current_group();
  if (!group.process_group) return;
  const torch::NoGradGuard no_gradients;
  struct Underway {
    const Bucket* bucket;
    std::vector<torch::Tensor> values;
    c10::intrusive_ptr<c10d::Work> work;
  };
  std::deque<Underway> underway;
  const auto finish = [&] {
    underway.front().work->wait();
    const auto& [bucket, values, work] = underway.front();
    if (bucket->owner != group.rank && values[0].data_ptr() != bucket->tensors[0].data_ptr())
      unflatten_into(values[0], bucket->tensors);
    underway.pop_front();
  };
  distributed::run_collective(group, "The exchange of parameters", [&] {
    for (const Bucket& bucket : buckets_) {
      const bool is_one = bucket.tensors.size() == 1 && bucket.tensors[0].is_contiguous();
      // A single tensor is sent from and to its own memory.
      Underway next{.bucket = &bucket,
                    .values = {is_one ? bucket.tensors[0].detach().view({-1}) : flatten_all(bucket.tensors)},
                    .work = {}};
      c10d::BroadcastOptions options;
      options.rootRank = bucket.owner;
      next.work = group.process_group->broadcast(next.values, options);
      underway.push_back(std::move(next));
      if (underway.size() > kBucketsAtOnce) finish();
    }
    while (!underway.empty()) finish();
  });
}

void ShardedParameters::save(const fs::path& directory, const std::string& name,
                             const torch::optim::Optimizer& own_part) const {
  const distributed::Group group = distributed::current_group();
  std::vector<pt::Value> by_group;
  for (const std::vector<int>& owners : owners_) {
    std::vector<pt::Value> indices;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == group.rank) indices.emplace_back(static_cast<std::int64_t>(i));
    }
    by_group.push_back(pt::make_container(pt::Container::Kind::list, std::move(indices)));
  }
  pt::DictBuilder content;
  content.add("optimizer", pt::optimizer_state(own_part, {}, pt::Partial::taken));
  content.add("parameters", pt::make_container(pt::Container::Kind::list, std::move(by_group)));
  pt::write_file(directory / shard_name(name, group.rank, group.world_size), content.take());
}

void ShardedParameters::load(const fs::path& directory, const std::string& name,
                             torch::optim::Optimizer& own_part) const {
  const std::vector<Shard> shards = read_shards(directory, name);
  const std::vector<std::vector<StatePlace>> places = find_places(shards, groups_);
  const int rank = distributed::current_group().rank;
  pt::DictBuilder states;
  std::vector<pt::Value> groups;
  std::int64_t number = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<pt::Value> numbers;
    for (std::size_t i = 0; i < groups_[group].size(); ++i) {
      if (owners_[group][i] != rank) continue;
      const auto& [shard, saved] = places[group][i];
      if (const pt::Value* const state = find_number(part_of(*shard, "state"), saved)) states.add(number, *state);
      numbers.emplace_back(number++);
    }
    groups.push_back(with_parameters(shards.front(), group, std::move(numbers)));
  }
  pt::DictBuilder whole;
  whole.add("state", states.take());
  whole.add("param_groups", pt::make_container(pt::Container::Kind::list, std::move(groups)));
  pt::Faults faults;
  pt::OptimizerUpdate update = pt::prepare_optimizer_update(own_part, whole.take(), faults, pt::Partial::taken);
  faults.throw_if_any("cannot load the state of an optimizer, \"" + name + "\", in " + directory.string());
  update.apply(own_part);
}

}  // namespace cadre::train::detail
