/// \file
/// Models whose parameters, gradients and optimizer states are divided among the ranks, so that a model may be larger
/// than a rank's memory has room for during training. The parameters of each module that a policy names are collected
/// from all ranks when a computation needs them, and dropped again; their gradients are summed and divided as soon as
/// they are complete. The model's code stays as it is.
///
///     auto model = train::fully_shard(Transformer(), train::modules_of<TransformerBlockImpl>());
///     torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(1e-4));
///     if (const auto checkpoint = train::get_checkpoint()) model.load_shards(checkpoint->path(), &optimizer);
///     for (auto& batch : loader) {
///       optimizer.zero_grad();
///       loss_of(model(batch.data), batch.target).backward();
///       model.clip_grad_norm(1.0);
///       optimizer.step();
///     }
///     train::report(metrics, [&](const std::filesystem::path& directory) { model.save_shard(directory, &optimizer);
///     });
///
/// Source: "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", Zhao et al., VLDB 2023; ZeRO stage 3 of
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", Rajbhandari et al., 2020.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/torch.h"
#include "cadre/train_torch/model.h"

namespace cadre::train {

/// Says of which modules the parameters are collected and dropped together: true for each of them. `name` is the
/// module's in the model, such as "blocks.3". Parameters that are in no such module are collected together, too. Must
/// say the same on all ranks.
using ShardingPolicy = std::function<bool(const std::string& name, const torch::nn::Module& module)>;

/// Returns the policy that names all modules of a class, such as TransformerBlockImpl.
template <std::derived_from<torch::nn::Module> Module>
ShardingPolicy modules_of() {
  return [](const std::string&, const torch::nn::Module& module) {
    return dynamic_cast<const Module*>(&module) != nullptr;
  };
}

/// Options of fully_shard.
struct FullyShardOptions {
  /// If true, the model is moved to get_device(). Otherwise it stays where it is.
  bool move_to_device = true;
  /// If true, buffers, such as the running means of batch normalisation, are copied from rank 0 before each forward
  /// pass that follows one with gradients. Otherwise every rank keeps its own.
  bool broadcast_buffers = true;
  bool sync_batch_norm = false;  ///< see PrepareModelOptions::sync_batch_norm
  /// How many modules' parameters are collected at a time, above 0; more only where one operation uses more. From two
  /// on those that were used next in two passes before are collected meanwhile. With more, fewer are collected twice.
  std::int64_t most_collected = 2;
};

namespace detail {

// An interface of the models that are divided among ranks.
class FullySharded : public DataParallel {
 public:
  virtual const torch::OrderedDict<std::string, torch::Tensor>& parts() const = 0;
  // Collect all parameters, and take their values over and drop them.
  virtual void collect() = 0;
  virtual void drop() noexcept = 0;
  virtual double clip_grad_norm(double max_norm, double norm_type) = 0;
  virtual void save(const std::filesystem::path& directory, const torch::optim::Optimizer* optimizer,
                    const std::string& name) const = 0;
  virtual void load(const std::filesystem::path& directory, torch::optim::Optimizer* optimizer,
                    const std::string& name) = 0;
};

std::shared_ptr<FullySharded> make_fully_sharded(torch::nn::Module& model, const ShardingPolicy& policy,
                                                 const FullyShardOptions& options);

}  // namespace detail

/// A guard, during whose life all parameters of a model are collected on every rank; returned by
/// FullyShardedModel::whole.
class [[nodiscard]] WholeParameters {
 public:
  explicit WholeParameters(std::shared_ptr<detail::FullySharded> model);  ///< see FullyShardedModel::whole
  ~WholeParameters();                                           ///< each rank takes the values of its part over
  WholeParameters(const WholeParameters&) = delete;             ///< neither copied nor moved
  WholeParameters& operator=(const WholeParameters&) = delete;  ///< neither copied nor moved

 private:
  std::shared_ptr<detail::FullySharded> model_;
};

/// A model whose parameters are divided among the ranks; `Impl` is the module's class. Copies refer to the same model.
/// Made by fully_shard.
template <std::derived_from<torch::nn::Module> Impl>
class FullyShardedModel {
 public:
  /// Makes a divided model; use fully_shard instead.
  FullyShardedModel(std::shared_ptr<Impl> module, std::shared_ptr<detail::FullySharded> sharded)
      : module_(std::move(module)), sharded_(std::move(sharded)) {}

  /// Calls the module's forward(), with the same arguments and result. Collective, with gradients and without, and so
  /// is backward() on values derived from the result: it averages the gradients over the ranks, and gives each rank
  /// those of its parts. After a backward() that has thrown on all ranks, the parts may have some of its gradients:
  /// call zero_grad(), and forward(), which drops the rest, or the next backward() throws InvalidArgument. Errors as
  /// those of PreparedModel::forward.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    const detail::ForwardPass pass(*sharded_);
    return module_->forward(std::forward<Arguments>(arguments)...);
  }
  /// Calls forward().
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// Returns the model itself. Outside of forward() and backward() its parameters have shapes but no values, and using
  /// these throws InvalidArgument; see whole().
  Impl& module() const { return *module_; }
  const std::shared_ptr<Impl>& ptr() const { return module_; }  ///< returns the model itself, as a shared pointer
  Impl* operator->() const { return module_.get(); }            ///< accesses members of the model

  /// Returns this rank's part of each parameter, for an optimizer that treats elements alike, which all of libtorch but
  /// LBFGS do: vectors of a part of the parameter's elements, or of none, in the order of the model's parameters.
  /// Schedules are used with that optimizer as with any other, and a GradScaler, whose unscale_ is collective then.
  std::vector<torch::Tensor> parameters() const { return sharded_->parts().values(); }
  /// Returns the same with the parameters' names, to make groups of an optimizer of.
  const torch::OrderedDict<std::string, torch::Tensor>& named_parameters() const { return sharded_->parts(); }
  /// Drops the gradients of this rank's parts, and those that no_sync() has kept.
  void zero_grad() {
    for (torch::Tensor& part : parameters()) part.mutable_grad().reset();
    for (torch::Tensor& parameter : module_->parameters()) parameter.mutable_grad().reset();
  }
  void train(bool on = true) { module_->train(on); }  ///< switches to training mode
  void eval() { module_->eval(); }                    ///< switches to evaluation mode; forward() remains collective

  /// Returns a guard for accumulating gradients: while it exists, backward() keeps the gradients of whole parameters on
  /// this rank, which takes their memory. The first backward() after that averages and divides them.
  NoSync no_sync() { return NoSync(sharded_); }

  /// Returns a guard, during whose life this rank has all parameters, for code that works on them: to save the whole
  /// model, to change weights, or for a rank that evaluates alone by module().forward(). Changes of a parameter are
  /// taken over from each rank for its part. Collective. Throws EngineError if another rank has ended.
  ///
  ///     const auto whole = model.whole();
  ///     if (train::get_context().get_world_rank() == 0) save_state(directory / "model.pt", model.module());
  WholeParameters whole() { return WholeParameters(sharded_); }

  /// Scales the gradients of all ranks so that their norm together is at most `max_norm`, and returns what it was, as
  /// torch::nn::utils::clip_grad_norm_ for a model that is not divided. `norm_type`: 2, or another number above 0, or
  /// infinity for the largest absolute value. Collective. Throws InvalidArgument for a max_norm below 0 or another
  /// norm_type, EngineError if another rank has ended.
  double clip_grad_norm(double max_norm, double norm_type = 2) { return sharded_->clip_grad_norm(max_norm, norm_type); }

  /// Writes this rank's parts of the model, and of the state of an optimizer of parameters(), into a file of the
  /// directory, "<name>_<rank>_of_<ranks>.pt". Every rank does so, for one checkpoint; buffers are those of rank 0.
  /// Under whole() the parts have the changes that were made there until now. `optimizer` may be nullptr. Throws
  /// InvalidArgument for an optimizer of other parameters, and otherwise as save_state does.
  void save_shard(const std::filesystem::path& directory, const torch::optim::Optimizer* optimizer = nullptr,
                  const std::string& name = "model") const {
    sharded_->save(directory, optimizer, name);
  }
  /// Reads this rank's parts from the files that all ranks have written, however many those were, and however they
  /// divided the model. Throws NotFound if there are none; InvalidArgument if one of them is missing, if they do not
  /// belong together, or as load_state does, and StorageError as that. After an error model and optimizer are
  /// unchanged.
  void load_shards(const std::filesystem::path& directory, torch::optim::Optimizer* optimizer = nullptr,
                   const std::string& name = "model") {
    sharded_->load(directory, optimizer, name);
  }

 private:
  std::shared_ptr<Impl> module_;
  std::shared_ptr<detail::FullySharded> sharded_;
};

/// Divides a model's parameters among the ranks: moves it to the worker's device, sets its parameters and buffers to
/// those of rank 0, and leaves each rank its part. Each rank needs memory for the whole model once, at this call.
/// Collective. Make the optimizer afterwards. In a world of one nothing is divided, and everything works.
/// Operations find parameters by a dispatch key of libtorch, so modules need no change; those that read a parameter's
/// memory without an operation of libtorch, by data_ptr(), must do so under whole(). Two networks may use one
/// parameter. A parameter without a gradient in a backward pass counts as one with zeros if others that are collected
/// with it have one. On the CPU, glibc is told to return freed blocks of 4 MiB and more to the system. Throws
/// InvalidArgument for a model that is null, that has no parameter which requires a gradient, or that differs between
/// the ranks, for a policy that is empty or differs, and for invalid options; EngineError if another rank has ended.
template <std::derived_from<torch::nn::Module> Impl>
FullyShardedModel<Impl> fully_shard(std::shared_ptr<Impl> model, const ShardingPolicy& policy,
                                    const FullyShardOptions& options = {}) {
  if (model == nullptr) throw InvalidArgument("fully_shard: there is no model");
  auto sharded = detail::make_fully_sharded(*model, policy, options);
  return {std::move(model), std::move(sharded)};
}
/// Does the same for a handle of TORCH_MODULE.
template <cadre::detail::ModuleHolder Holder>
FullyShardedModel<typename Holder::ContainedType> fully_shard(const Holder& model, const ShardingPolicy& policy,
                                                              const FullyShardOptions& options = {}) {
  if (model.is_empty()) throw InvalidArgument("fully_shard: there is no model");
  return fully_shard(model.ptr(), policy, options);
}

}  // namespace cadre::train
