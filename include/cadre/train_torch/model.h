/// \file
/// A model that all ranks train together.
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

/// Options of prepare_model.
struct PrepareModelOptions {
  /// If true, the model is moved to get_device(). Otherwise it stays where it is.
  bool move_to_device = true;
  /// If true, buffers, such as the running means of batch normalisation, are copied from rank 0 before each forward
  /// pass that follows a synchronised one. Otherwise every rank keeps its own; they are equal only at the start.
  bool broadcast_buffers = true;
  /// If true, every backward pass searches for parameters that the outputs do not depend on. Needed if a pass may leave
  /// some out: otherwise the next one throws. forward() must return tensors, or tuples, pairs, arrays, vectors, maps or
  /// optionals of them. Costs a walk over the graph.
  bool find_unused_parameters = false;
  /// If true, every pass uses the same parameters in the same way: unused ones, and those that are used several times,
  /// are searched for in the first pass only. forward() may return the same types as for find_unused_parameters.
  bool static_graph = false;
  /// If true, gradients lie in the buffers in which they are exchanged: less memory, and no copy. Such gradients cannot
  /// be detached: call PreparedModel::zero_grad, not the optimizer's.
  bool gradient_as_bucket_view = false;
  /// Size of the buckets in which gradients are exchanged, in bytes, above 0. Each bucket is exchanged as soon as it is
  /// complete. The first one has up to 1 MiB, so that the exchange begins early.
  std::int64_t bucket_cap_bytes = std::int64_t{25} << 20;
  /// If true, batch normalisation in training uses the mean and variance of all ranks' batches together, and leaves
  /// the running ones of that: as torch.nn.SyncBatchNorm, in the model's own modules. For small batches; each such
  /// layer waits for all ranks. libtorch refuses a rank with a single value per channel all the same. Otherwise every
  /// rank normalises by its own batch.
  bool sync_batch_norm = false;
  /// If true, gradients are exchanged as 16-bit floats: half the bytes, and less precise.
  bool compress_gradients = false;
};

namespace detail {

template <class T>
inline constexpr bool kIsModulePointer = false;
template <std::derived_from<torch::nn::Module> T>
inline constexpr bool kIsModulePointer<std::shared_ptr<T>> = true;

// An interface that keeps the models of all ranks equal.
class DataParallel {
 public:
  virtual ~DataParallel() = default;
  virtual void before_forward() = 0;
  // Gets the tensors of forward()'s result, some of which may be replaced; `are_known` is false if the result has a
  // type that visit_tensors cannot look into.
  virtual void after_forward(std::span<torch::Tensor* const> outputs, bool are_known) = 0;
  // Is called at the end of each forward pass, also if it throws.
  virtual void end_forward() noexcept = 0;

  bool synchronize = true;
};

// The time of a forward pass.
class ForwardPass {
 public:
  explicit ForwardPass(DataParallel& model) : model_(model) { model_.before_forward(); }
  ~ForwardPass() { model_.end_forward(); }
  ForwardPass(const ForwardPass&) = delete;
  ForwardPass& operator=(const ForwardPass&) = delete;

 private:
  DataParallel& model_;
};

// Returns nullptr in a world of one. Moves the model.
std::shared_ptr<DataParallel> make_data_parallel(torch::nn::Module& model, const PrepareModelOptions& options);

}  // namespace detail

/// A guard that keeps gradients local to this rank until it is destroyed; returned by PreparedModel::no_sync.
class [[nodiscard]] NoSync {
 public:
  explicit NoSync(std::shared_ptr<detail::DataParallel> model);  ///< see PreparedModel::no_sync
  ~NoSync();                                                     ///< restores the previous state
  NoSync(const NoSync&) = delete;                                ///< neither copied nor moved
  NoSync& operator=(const NoSync&) = delete;                     ///< neither copied nor moved

 private:
  std::shared_ptr<detail::DataParallel> model_;
  bool former_ = true;
};

/// A model that all ranks train together; `Impl` is the module's class, such as NetImpl for TORCH_MODULE(Net). Copies
/// refer to the same model. Made by prepare_model.
template <std::derived_from<torch::nn::Module> Impl>
class PreparedModel {
 public:
  /// Makes a prepared model; use prepare_model instead.
  PreparedModel(std::shared_ptr<Impl> module, std::shared_ptr<detail::DataParallel> data_parallel)
      : module_(std::move(module)), data_parallel_(std::move(data_parallel)) {}

  /// Calls the module's forward(), with the same arguments and result. backward() on values derived from the result
  /// averages the gradients over the ranks while it computes them, and leaves the same bits on every rank. A pass with
  /// gradients is therefore collective, as are its buffers (PrepareModelOptions::broadcast_buffers): a rank that works
  /// alone, for example to evaluate, must call module().forward(). If backward() is called several times after one
  /// forward(), only the first is averaged.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    if (data_parallel_ == nullptr) return module_->forward(std::forward<Arguments>(arguments)...);
    const detail::ForwardPass pass(*data_parallel_);
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    data_parallel_->after_forward(detail::tensors_of(output), detail::tensors_are_visible<decltype(output)>);
    return output;
  }
  /// Calls forward().
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  Impl& module() const { return *module_; }                     ///< returns the model itself, in a world of any size
  const std::shared_ptr<Impl>& ptr() const { return module_; }  ///< returns the model itself, as a shared pointer
  Impl* operator->() const { return module_.get(); }            ///< accesses members of the model

  /// Returns the model's parameters, for an optimizer.
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  /// Drops all gradients, regardless of the memory in which they lie.
  void zero_grad() {
    for (torch::Tensor& parameter : module_->parameters()) parameter.mutable_grad().reset();
  }
  void train(bool on = true) { module_->train(on); }  ///< switches to training mode
  void eval() { module_->eval(); }                    ///< switches to evaluation mode; forward() remains collective

  /// Returns a guard for accumulating gradients: while it exists, forward() and backward() are local to this rank. The
  /// first backward() after that, with its own forward(), averages the accumulated gradients.
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

/// Prepares a model for training by all ranks: moves it to the worker's device, and sets its parameters and buffers to
/// those of rank 0, whatever their values were. Collective. Make the optimizer afterwards. Parameters that do not
/// require a gradient at the first synchronised pass are not averaged later either. The algorithm is that of PyTorch's
/// DistributedDataParallel (Li et al., VLDB 2020), with its reducer.
/// Throws InvalidArgument for a model that is null, that has no parameter which requires a gradient, or that differs
/// between the ranks (the message names the first parameter or buffer that does), and for invalid options; EngineError
/// if another rank has ended.
template <std::derived_from<torch::nn::Module> Impl>
PreparedModel<Impl> prepare_model(std::shared_ptr<Impl> model, const PrepareModelOptions& options = {}) {
  if (model == nullptr) throw InvalidArgument("prepare_model: there is no model");
  auto data_parallel = detail::make_data_parallel(*model, options);
  return {std::move(model), std::move(data_parallel)};
}
/// Does the same for a handle of TORCH_MODULE.
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
