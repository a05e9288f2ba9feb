#include "cadre/train_torch/sharded_optimizer.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <set>

#include "cadre/error.h"
#include "torch/distributed/collectives.h"
#include "torch/distributed/group.h"
#include "torch/distributed/shard_files.h"
#include "torch/faults.h"
#include "torch/optimizer_state.h"
#include "torch/parts.h"
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

using distributed::Shard;

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
    if (by_group == nullptr) shard.refuse("it is not the part of an optimizer's state that save_shard writes");
    if (by_group->items.size() != groups.size()) {
      shard.refuse("it has " + std::to_string(by_group->items.size()) + " groups of parameters, and the optimizer " +
                   std::to_string(groups.size()));
    }
    std::int64_t number = 0;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const pt::Container* const indices = by_group->items[group].list();
      if (indices == nullptr) shard.refuse("its parameters are no lists");
      for (const pt::Value& item : indices->items) {
        const auto* const index = item.get_if<std::int64_t>();
        if (index == nullptr || *index < 0 || static_cast<std::size_t>(*index) >= groups[group].size()) {
          shard.refuse("it has parameters that group " + std::to_string(group) + " of the optimizer, with " +
                       std::to_string(groups[group].size()) + ", has not");
        }
        StatePlace& place = places[group][static_cast<std::size_t>(*index)];
        if (place.shard != nullptr) shard.refuse("it does not belong to " + place.shard->file.string());
        place = {.shard = &shard, .number = number++};
      }
    }
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::size_t i = 0; i < groups[group].size(); ++i) {
      if (places[group][i].shard == nullptr) {
        shards.front().refuse("neither it nor another part has parameter " + std::to_string(i) + " of group " +
                              std::to_string(group));
      }
    }
  }
  return places;
}

// Returns the number of steps before the files were written, which is the same for all of one moment.
std::int64_t steps_of(const std::vector<Shard>& shards) {
  std::optional<std::int64_t> steps;
  for (const Shard& shard : shards) {
    const auto* const own = shard.at("steps").get_if<std::int64_t>();
    if (own == nullptr || *own < 0) shard.refuse("its \"steps\" is not a number of them");
    if (!steps) steps = *own;
    if (*steps != *own) {
      shard.refuse("it does not belong to the files before it: it was written after " + std::to_string(*own) +
                   " steps, and they after " + std::to_string(*steps));
    }
  }
  return *steps;
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
  const bool are_parts =
      std::ranges::any_of(groups_, [](const auto& group) { return !pt::owners_of_parts(group).empty(); });
  if (are_parts) faults.add("parameters of fully_shard are divided already: give them to the optimizer itself");
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

std::vector<std::vector<bool>> ShardedParameters::are_own() const {
  const int rank = distributed::current_group().rank;
  std::vector<std::vector<bool>> own;
  for (const std::vector<int>& owners : owners_) {
    std::vector<bool>& group = own.emplace_back();
    for (const int owner : owners) group.push_back(owner == rank);
  }
  return own;
}

std::vector<torch::Tensor> ShardedParameters::own(std::size_t group) const {
  const int rank = distributed::current_group().rank;
  std::vector<torch::Tensor> tensors;
  for (std::size_t i = 0; i < groups_[group].size(); ++i) {
    if (owners_[group][i] == rank) tensors.push_back(groups_[group][i]);
  }
  return tensors;
}

void ShardedParameters::exchange() {
  ++steps_;
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
  content.add("steps", steps_);
  pt::write_file(distributed::shard_file(directory, name, group.rank, group.world_size), content.take());
}

void ShardedParameters::load(const fs::path& directory, const std::string& name, torch::optim::Optimizer& own_part) {
  std::vector<Shard> shards;
  for (const fs::path& file : distributed::find_shards(directory, name, "the state of an optimizer"))
    shards.push_back(distributed::read_shard(file));
  const std::int64_t steps = steps_of(shards);
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
      if (const pt::Value* const state = distributed::find_number(shard->at("optimizer", "state"), saved))
        states.add(number, *state);
      numbers.emplace_back(number++);
    }
    groups.push_back(distributed::group_options(shards.front(), group, std::move(numbers)));
  }
  pt::DictBuilder whole;
  whole.add("state", states.take());
  whole.add("param_groups", pt::make_container(pt::Container::Kind::list, std::move(groups)));
  pt::Faults faults;
  pt::OptimizerUpdate update = pt::prepare_optimizer_update(own_part, whole.take(), faults, pt::Partial::taken);
  faults.throw_if_any("cannot load the state of an optimizer, \"" + name + "\", in " + directory.string());
  update.apply(own_part);
  steps_ = steps;
}

}  // namespace cadre::train::detail
