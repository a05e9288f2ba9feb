#include "cadre/train_torch/distributed_sampler.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "cadre/error.h"
#include "torch/distributed/group.h"
#include "torch/distributed/shares.h"
#include "torch/faults.h"

namespace cadre::distributed {

std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed) {
  const torch::Tensor order =
      torch::randperm(static_cast<std::int64_t>(size), at::make_generator<at::CPUGeneratorImpl>(seed), torch::kLong);
  const auto* const begin = static_cast<const std::int64_t*>(order.const_data_ptr());
  return {begin, begin + size};
}

std::vector<std::size_t> in_order(std::size_t size) {
  std::vector<std::size_t> all(size);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::size_t share_of(std::size_t count, std::size_t world_size, std::size_t rank, train::Remainder remainder) {
  switch (remainder) {
    case train::Remainder::pad:
      return (count + world_size - 1) / world_size;
    case train::Remainder::drop:
      return count / world_size;
    case train::Remainder::keep:
      return count / world_size + (rank < count % world_size ? 1 : 0);
  }
  throw InvalidArgument("there is no such remainder");
}

}  // namespace cadre::distributed

namespace cadre::train {
namespace {

constexpr const char* what = "DistributedSampler";

torch::Tensor read_number(torch::serialize::InputArchive& archive, const char* name) {
  torch::Tensor number;
  archive.read(name, number);
  return number;
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t size, const DistributedSamplerOptions& options)
    : size_(size),
      shuffle_(options.shuffle),
      seed_(options.seed),
      remainder_(options.remainder),
      epoch_(std::make_shared<std::uint64_t>(0)) {
  const distributed::Group group = distributed::current_group();
  const int world_size = options.world_size.value_or(group.world_size);
  const int rank = options.rank.value_or(group.rank);
  pt::Faults faults;
  if (size == 0) faults.add("the dataset is empty");
  if (world_size < 1) faults.add("a world of " + std::to_string(world_size) + " ranks");
  if (rank < 0 || rank >= world_size) {
    faults.add("there is no rank " + std::to_string(rank) + " in a world of " + std::to_string(world_size));
  }
  faults.throw_if_any(what);
  world_size_ = static_cast<std::size_t>(world_size);
  rank_ = static_cast<std::size_t>(rank);
}

std::size_t DistributedSampler::share() const { return distributed::share_of(size_, world_size_, rank_, remainder_); }

std::vector<std::size_t> DistributedSampler::indices() const {
  const std::vector<std::size_t> all =
      shuffle_ ? distributed::permutation(size_, seed_ + *epoch_) : distributed::in_order(size_);
  return distributed::share_of(std::span(all), 0, world_size_, rank_, remainder_);
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size == std::size_t{0}) throw InvalidArgument(std::string(what) + ": the dataset is empty");
  size_ = new_size.value_or(size_);
  indices_ = indices();
  position_ = 0;
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (indices_.empty()) indices_ = indices();
  if (position_ == indices_.size()) return std::nullopt;
  const auto begin = indices_.begin() + static_cast<std::ptrdiff_t>(position_);
  const std::size_t count = std::min(batch_size, indices_.size() - position_);
  position_ += count;
  return std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", torch::tensor(static_cast<std::int64_t>(*epoch_)), /*is_buffer=*/true);
  archive.write("position", torch::tensor(static_cast<std::int64_t>(position_)), /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  const auto epoch = static_cast<std::uint64_t>(read_number(archive, "epoch").item<std::int64_t>());
  const auto position = static_cast<std::size_t>(read_number(archive, "position").item<std::int64_t>());
  if (position > share()) {
    throw InvalidArgument(std::string(what) + ": position " + std::to_string(position) + " of a share of " +
                          std::to_string(share()) + " examples");
  }
  *epoch_ = epoch;
  indices_ = indices();
  position_ = position;
}

}  // namespace cadre::train
