/// \file
/// Which part of a dataset is this rank's.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cadre::train {

/// What becomes of the examples that are left over where the dataset's size is no multiple of the world size.
enum class Remainder {
  pad,   ///< the first examples are repeated, so that all ranks have as many
  drop,  ///< they are left out, so that all ranks have as many
  keep,  ///< some ranks have one example more: every example exactly once, as an evaluation wants it
};

/// What a DistributedSampler may be told.
struct DistributedSamplerOptions {
  std::optional<int> world_size = {};    ///< default: that of this process's group
  std::optional<int> rank = {};          ///< 0 to world_size - 1; default: that of this process
  bool shuffle = true;                   ///< another order in each epoch; otherwise the dataset's
  std::uint64_t seed = 0;                ///< the same on all ranks
  Remainder remainder = Remainder::pad;  ///< of the dataset
};

/// Which examples of a dataset this rank takes, and in which order: of the epoch's order every world_size-th, beginning
/// at its rank. Epoch `e` is shuffled with seed + e, so the shares and their order are those of Python's
/// torch.utils.data.DistributedSampler. For torch::data::make_data_loader, or alone.
///
/// Copies share their epoch: make_data_loader takes a copy.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Of a dataset with this many examples. Throws InvalidArgument when there are none, and for a bad rank.
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {});

  /// What the next reset() begins; 0 at first.
  void set_epoch(std::uint64_t epoch) { *epoch_ = epoch; }
  std::uint64_t epoch() const { return *epoch_; }  ///< see set_epoch
  std::size_t share() const;                       ///< how many examples this rank has in an epoch
  std::vector<std::size_t> indices() const;        ///< these, of epoch(), in order

  /// Begins epoch() anew, perhaps with another size of the dataset.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  /// The next indices, at most `batch_size`; empty at the end of the epoch.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  /// Writes the epoch and the position in it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads what save wrote.
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
