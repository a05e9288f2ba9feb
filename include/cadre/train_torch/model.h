/// \file
/// One model, trained by all ranks.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/torch.h"
#include "cadre/train_torch/tensors.h"

namespace cadre::train {

/// What prepare_model may be told.
struct PrepareModelOptions {
  /// Moves the model to get_device(). Otherwise it stays where it is.
  bool move_to_device = true;
  /// Buffers, such as the running means of batch normalisation, are rank 0's before each forward pass that follows a
  /// synchronised one. Otherwise every rank has its own, which were the same in the beginning.
  bool broadcast_buffers = true;
  /// Every backward pass looks for parameters that the outputs do not depend on. Needed where a pass may leave some
  /// out: otherwise the next one throws. forward() must return tensors, or tuples, pairs, arrays, vectors, maps or
  /// optionals of them. Costs a walk over the graph.
  bool find_unused_parameters = false;
  /// The same parameters are used in the same way in every pass: unused ones, and those that are used several times,
  /// are found in the first pass only. For what forward() may return see find_unused_parameters.
  bool static_graph = false;
  /// Gradients lie in the memory that they are exchanged in: less memory, and no copy. Such gradients cannot be
  /// detached: call PreparedModel::zero_grad, not the optimizer's.
  bool gradient_as_bucket_view = false;
  /// Gradients are exchanged in buckets of up to this many bytes, each as soon as it is complete. Above 0. The first
  /// bucket has up to 1 MiB, so that the exchange begins early.
  std::int64_t bucket_cap_bytes = std::int64_t{25} << 20;
  /// Gradients travel as 16-bit floats: half the bytes, and less precise.
  bool compress_gradients = false;
};

namespace detail {

template <class T>
inline constexpr bool kIsModulePointer = false;
template <std::derived_from<torch::nn::Module> T>
inline constexpr bool kIsModulePointer<std::shared_ptr<T>> = true;

// What keeps the model of one rank like those of the others.
class DataParallel {
 public:
  virtual ~DataParallel() = default;
  virtual void before_forward() = 0;
  // With the tensors of what forward() returned, some of which may be replaced; `are_known` is false where it is of a
  // type that visit_tensors cannot look into.
  virtual void after_forward(std::span<torch::Tensor* const> outputs, bool are_known) = 0;

  bool synchronize = true;
};

// nullptr in a world of one. Moves the model.
std::shared_ptr<DataParallel> make_data_parallel(torch::nn::Module& model, const PrepareModelOptions& options);

}  // namespace detail

/// While it lives, backward passes keep their gradients to this rank: what PreparedModel::no_sync returns.
class [[nodiscard]] NoSync {
 public:
  explicit NoSync(std::shared_ptr<detail::DataParallel> model);  ///< see PreparedModel::no_sync
  ~NoSync();                                                     ///< everything is as before
  NoSync(const NoSync&) = delete;                                ///< lives where it was made
  NoSync& operator=(const NoSync&) = delete;                     ///< lives where it was made

 private:
  std::shared_ptr<detail::DataParallel> model_;
  bool former_ = true;
};

/// A model that all ranks train together; `Impl` is the module's class, such as NetImpl for what TORCH_MODULE(Net)
/// made. Copies are the same model. Made by prepare_model.
template <std::derived_from<torch::nn::Module> Impl>
class PreparedModel {
 public:
  /// Use prepare_model.
  PreparedModel(std::shared_ptr<Impl> module, std::shared_ptr<detail::DataParallel> data_parallel)
      : module_(std::move(module)), data_parallel_(std::move(data_parallel)) {}

  /// The module's forward(), with the same arguments and result. backward() on what comes of it averages the gradients
  /// over the ranks while it computes them, and leaves the same bits on every rank. So a pass with gradients is
  /// collective, also its buffers (PrepareModelOptions::broadcast_buffers): a rank that works alone, for example to
  /// evaluate, calls module().forward(). Of several backward() after one forward() the first is averaged.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    if (data_parallel_ == nullptr) return module_->forward(std::forward<Arguments>(arguments)...);
    data_parallel_->before_forward();
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    data_parallel_->after_forward(detail::tensors_of(output), detail::tensors_are_visible<decltype(output)>);
    return output;
  }
  /// forward()
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  Impl& module() const { return *module_; }                     ///< the model itself, in a world of any size
  const std::shared_ptr<Impl>& ptr() const { return module_; }  ///< the model itself, to be shared
  Impl* operator->() const { return module_.get(); }            ///< members of the model

  /// The model's parameters, for an optimizer.
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  /// Drops all gradients, in whatever memory they lie.
  void zero_grad() {
    for (torch::Tensor& parameter : module_->parameters()) parameter.mutable_grad().reset();
  }
  void train(bool on = true) { module_->train(on); }  ///< training mode
  void eval() { module_->eval(); }                    ///< evaluation mode; forward() is collective all the same

  /// For accumulating gradients: while the returned object lives, forward() and backward() are this rank's alone. The
  /// first backward() after it, with its own forward(), averages what has been accumulated.
  ///
  ///     {
  ///       const auto local = model.no_sync();
  ///       loss_of(model(first_half)).backward();
  ///     }
  ///     loss_of(model(second_half)).backward();
  NoSync no_sync() { return NoSync(data_parallel_); }

 private:
  std::shared_ptr<Impl> module_;
  std::shared_ptr<detail::DataParallel> data_parallel_;  // nullptr in a world of one
};

/// Prepares a model for training by all ranks: it is moved to the worker's device, and its parameters and buffers
/// become those of rank 0, whatever their values were. Collective. Make the optimizer afterwards. What does not require
/// a gradient at the first synchronised pass is not averaged later either. The algorithm is that of PyTorch's
/// DistributedDataParallel (Li et al., VLDB 2020), with its reducer.
/// Throws InvalidArgument for a model that is null, that has no parameter which requires a gradient, or that differs
/// between the ranks (the message names the first parameter or buffer that does), and for bad options; EngineError when
/// another rank is gone.
template <std::derived_from<torch::nn::Module> Impl>
PreparedModel<Impl> prepare_model(std::shared_ptr<Impl> model, const PrepareModelOptions& options = {}) {
  if (model == nullptr) throw InvalidArgument("prepare_model: there is no model");
  auto data_parallel = detail::make_data_parallel(*model, options);
  return {std::move(model), std::move(data_parallel)};
}
/// The same for the handles that TORCH_MODULE makes.
template <cadre::detail::ModuleHolder Holder>
PreparedModel<typename Holder::ContainedType> prepare_model(const Holder& model,
                                                            const PrepareModelOptions& options = {}) {
  if (model.is_empty()) throw InvalidArgument("prepare_model: there is no model");
  return prepare_model(model.ptr(), options);
}
/// \cond mistakes, which do not compile
template <class T>
  requires std::derived_from<T, torch::nn::Module>
CADRE_MISTAKE("a model is given as a shared pointer: write prepare_model(std::make_shared<Net>())")
PreparedModel<T> prepare_model(const T& model, const PrepareModelOptions& options = {});
template <class T>
  requires(!std::derived_from<T, torch::nn::Module> && !cadre::detail::ModuleHolder<T> && !detail::kIsModulePointer<T>)
CADRE_MISTAKE("a model is a shared pointer to a class that derives from torch::nn::Module, or what TORCH_MODULE makes")
PreparedModel<torch::nn::Module> prepare_model(const T& model, const PrepareModelOptions& options = {});
/// \endcond

}  // namespace cadre::train
