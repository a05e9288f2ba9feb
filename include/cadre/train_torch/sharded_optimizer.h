/// \file
/// Optimizers whose state is divided among the ranks, so that a model may be larger: with Adam, the state of a
/// parameter takes twice its memory, and each rank keeps only its part of that. Parameters and gradients are whole on
/// every rank, and after each step the same as without it, bit for bit.
///
///     auto model = train::prepare_model(Net());
///     const torch::optim::AdamWOptions options(0.01);
///     auto optimizer = train::prepare_optimizer<torch::optim::AdamW>(model.parameters(), options);
///     if (const auto checkpoint = train::get_checkpoint()) optimizer.load_shards(checkpoint->path());
///     …
///     train::report(metrics, [&](const fs::path& directory) { optimizer.save_shard(directory); });
///
/// Source: "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", Rajbhandari et al., stage 1; as
/// torch.distributed.optim.ZeroRedundancyOptimizer.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cadre/torch.h"

namespace cadre::train {

namespace detail {

// The parameters of an optimizer, each of which one rank steps. Equal on all ranks.
class ShardedParameters : public cadre::detail::PartOfOptimizer {
 public:
  // Throws InvalidArgument for a parameter that is there twice or undefined, or if there are none.
  explicit ShardedParameters(std::vector<std::vector<torch::Tensor>> groups);

  std::vector<torch::Tensor> whole() const override;
  std::vector<std::vector<bool>> are_own() const override;
  // Returns this rank's parameters of a group.
  std::vector<torch::Tensor> own(std::size_t group) const;
  // Gives every rank the values of those that others have stepped.
  void exchange();
  void save(const std::filesystem::path& directory, const std::string& name,
            const torch::optim::Optimizer& own_part) const;
  void load(const std::filesystem::path& directory, const std::string& name, torch::optim::Optimizer& own_part);

 private:
  struct Bucket {
    int owner = 0;
    std::vector<torch::Tensor> tensors = {};
  };

  std::vector<std::vector<torch::Tensor>> groups_;
  std::vector<std::vector<int>> owners_;  // ranks, by group and parameter
  std::vector<Bucket> buckets_;
  std::int64_t steps_ = 0;  // also before a checkpoint: files of one moment have the same
};

// Returns the parameters by group.
std::vector<std::vector<torch::Tensor>> parameters_of(const std::vector<torch::optim::OptimizerParamGroup>& groups);

}  // namespace detail

/// An optimizer of the kind `Optimizer`, such as torch::optim::Adam, of which this rank keeps a part: made by
/// prepare_optimizer. load_state and load_dict give it this rank's part of a whole optimizer's state, such as one that
/// was saved before it was divided; save_state and save_dict refuse it. Its groups have the parameters of this rank
/// alone, and possibly none; hyper-parameters, schedules and gradient scalers are used with it as with any other, on
/// every rank.
template <std::derived_from<torch::optim::Optimizer> Optimizer>
class ShardedOptimizer : public detail::ShardedParameters, public Optimizer {
  static_assert(!std::same_as<Optimizer, torch::optim::LBFGS>,
                "LBFGS has one state for all parameters, which cannot be divided");

 public:
  /// Makes an optimizer; use prepare_optimizer instead.
  template <class Options>
  ShardedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups, const Options& options)
      : detail::ShardedParameters(detail::parameters_of(groups)), Optimizer(own_groups(groups), options) {}

  /// Takes a step with this rank's parameters, and gives all ranks the values of all. Collective. Throws EngineError if
  /// another rank has ended.
  torch::Tensor step(typename Optimizer::LossClosure closure = nullptr) override {
    torch::Tensor loss = Optimizer::step(std::move(closure));
    exchange();
    return loss;
  }
  /// Drops the gradients of all parameters, also of those that other ranks step; or sets them to 0.
  void zero_grad(bool set_to_none = true) {
    for (torch::Tensor& parameter : whole()) {
      if (set_to_none) {
        parameter.mutable_grad().reset();
      } else if (parameter.grad().defined()) {
        parameter.mutable_grad().detach_().zero_();
      }
    }
  }

  /// Writes this rank's part of the state into a file of the directory, "<name>_<rank>_of_<ranks>.pt". Every rank does
  /// so, for one checkpoint. `name`: another one for each optimizer. Throws as save_state does.
  void save_shard(const std::filesystem::path& directory, const std::string& name = "optimizer") const {
    save(directory, name, *this);
  }
  /// Reads this rank's part from the files that all ranks have written, however many those were. Throws NotFound if
  /// there are none; InvalidArgument if one of them is missing, if they do not belong together, or as load_state does,
  /// and StorageError as that. After an error the optimizer is unchanged.
  void load_shards(const std::filesystem::path& directory, const std::string& name = "optimizer") {
    load(directory, name, *this);
  }

 private:
  std::vector<torch::optim::OptimizerParamGroup> own_groups(
      const std::vector<torch::optim::OptimizerParamGroup>& groups) const {
    std::vector<torch::optim::OptimizerParamGroup> all;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].has_options()) {
        all.emplace_back(own(i), groups[i].options().clone());
      } else {
        all.emplace_back(own(i));
      }
    }
    return all;
  }
};

/// Returns an optimizer of groups of parameters, whose state is divided among the ranks by the sizes of the parameters.
/// These must be the same on all ranks, as those of a prepared model are. Throws InvalidArgument if a parameter is
/// undefined or there twice, if there are none, and for options that the optimizer refuses.
template <std::derived_from<torch::optim::Optimizer> Optimizer,
          std::derived_from<torch::optim::OptimizerOptions> Options>
ShardedOptimizer<Optimizer> prepare_optimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                              const Options& options) {
  return ShardedOptimizer<Optimizer>(groups, options);
}
/// Does the same with one group.
template <std::derived_from<torch::optim::Optimizer> Optimizer,
          std::derived_from<torch::optim::OptimizerOptions> Options>
ShardedOptimizer<Optimizer> prepare_optimizer(std::vector<torch::Tensor> parameters, const Options& options) {
  return ShardedOptimizer<Optimizer>({torch::optim::OptimizerParamGroup(std::move(parameters))}, options);
}

}  // namespace cadre::train
