/// \file
/// A sampler of this rank's part of a dataset.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cadre::train {

/// The treatment of remaining examples if the dataset's size is not a multiple of the world size.
enum class Remainder {
  pad,   ///< the first examples are repeated, so that all ranks have equally many
  drop,  ///< they are left out, so that all ranks have equally many
  keep,  ///< some ranks have one example more: every example occurs exactly once, as evaluations need it
};

/// Options of a DistributedSampler.
struct DistributedSamplerOptions {
  std::optional<int> world_size = {};    ///< default: size of this process's group
  std::optional<int> rank = {};          ///< 0 to world_size - 1; default: rank of this process
  bool shuffle = true;                   ///< a different order in each epoch; otherwise the dataset's order
  std::uint64_t seed = 0;                ///< equal on all ranks
  Remainder remainder = Remainder::pad;  ///< treatment of remaining examples
};

/// A sampler that selects this rank's examples of a dataset and their order: every world_size-th example of the epoch's
/// order, beginning at the rank. Epoch `e` is shuffled with seed + e, so the shares and their order are those of
/// Python's torch.utils.data.DistributedSampler. For torch::data::make_data_loader, or alone.
///
/// Copies share their epoch, because make_data_loader copies its sampler.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Makes a sampler for a dataset with this many examples. Throws InvalidArgument if there are none, and for an
  /// invalid rank.
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {});

  /// Sets the epoch that the next reset() starts; 0 at first.
  void set_epoch(std::uint64_t epoch) { *epoch_ = epoch; }
  std::uint64_t epoch() const { return *epoch_; }  ///< returns the epoch; see set_epoch
  std::size_t share() const;                       ///< returns the number of examples of this rank in an epoch
  std::vector<std::size_t> indices() const;        ///< returns these examples for epoch(), in order

  /// Restarts epoch(), optionally with another size of the dataset.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  /// Returns the next indices, at most `batch_size`; empty at the end of the epoch.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  /// Writes the epoch and the position in it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Restores the epoch and the position that save() has written.
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::size_t size_;
  std::size_t world_size_;
  std::size_t rank_;
  bool shuffle_;
  std::uint64_t seed_;
  Remainder remainder_;
  std::shared_ptr<std::uint64_t> epoch_;
  std::vector<std::size_t> indices_;
  std::size_t position_ = 0;
};

}  // namespace cadre::train
