/// \file
/// Saves and loads the state of a model and an optimizer as one file, sets hyper-parameters of an optimizer, and puts
/// tensors and modules into the object store.
///
/// The files are those of Python's torch.save: torch.load(file, weights_only=True) reads what save_state wrote, and
/// load_state reads what torch.save wrote (PyTorch 1.6 and newer) without ever running code from it.
///
/// The functions may be called in any thread, but each model, optimizer and file must be used by one thread at a time.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "cadre/error.h"
#include "cadre/object.h"
#include "cadre/value.h"

namespace cadre {

/// Writes {"model": state_dict, "optimizer": state_dict, "step": step}. The model's entry has its parameters and
/// buffers under the names that Python gives them; the optimizer's entry has the layout of Python's, so that
/// load_state_dict of the Python classes accepts both. Tensors on other devices are copied to the CPU. An existing file
/// is replaced. The file is not synced to disk; reporting a checkpoint does that.
/// Supports all optimizers of libtorch: SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS. Throws InvalidArgument for
/// another optimizer and for a tensor that is sparse or quantized, StorageError (OutOfSpace on a full disk) if the file
/// cannot be written; a partial file is then unusable.
void save_state(const std::filesystem::path& file, const torch::nn::Module& model,
                const torch::optim::Optimizer& optimizer, std::int64_t step);
/// Does the same without an optimizer: the file has no "optimizer" entry.
void save_state(const std::filesystem::path& file, const torch::nn::Module& model, std::int64_t step = 0);

/// Reads a file of save_state or of Python's torch.save into a model and an optimizer that have the same structure, and
/// returns its step (0 if it has none). Values are copied into the model's own tensors, on any device, and converted
/// to the types of these tensors. The optimizer gets the file's options (learning rate and the like) and state; it must
/// have as many groups and parameters as the file, of the same shapes. Throws NotFound if there is no file;
/// StorageError, with file and offset, if it is damaged, truncated, or holds anything but dictionaries, lists, numbers,
/// text and tensors; InvalidArgument if it was written by another kind of optimizer or has a state that this one cannot
/// use, and InvalidArgument that names every parameter which is missing in the file, unknown to the model, or of
/// another shape (both shapes are shown). After an error model and optimizer are unchanged.
std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer);
/// Does the same for the model only. The file may also be the model's state_dict alone.
std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model);

/// Sets the options of the optimizer that a config has entries for, in all of its parameter groups:
///
/// | optimizer | entries |
/// |---|---|
/// | SGD | lr, momentum, dampening, weight_decay, nesterov |
/// | Adam, AdamW | lr, betas (a list of two), eps, weight_decay, amsgrad |
/// | RMSprop | lr, alpha, eps, weight_decay, momentum, centered |
/// | Adagrad | lr, lr_decay, eps, weight_decay |
/// | LBFGS | lr, max_iter, tolerance_grad, tolerance_change |
///
/// Other entries are ignored. Throws InvalidArgument that names every value of a wrong type or outside its range (the
/// ranges are those of the Python classes); then nothing was set.
void set_hyperparameters(torch::optim::Optimizer& optimizer, const Config& config);

/// Puts a tensor into the object store (cadre/object.h), with its type and shape, and without its gradient; a tensor on
/// another device is copied to the CPU. The object is a safetensors file with one tensor, "tensor", that Python's
/// safetensors reads. Throws InvalidArgument for a tensor that is undefined, sparse or quantized, or of a type that
/// such files do not support; StorageError if the system does not provide the memory.
ObjectRef put(const torch::Tensor& tensor);
/// Does the same for a module's state: its parameters and buffers under the names that Python gives them.
ObjectRef put(const torch::nn::Module& module);

/// Returns the tensor that was put, as a view of the object's mapping: nothing is copied or read, however large it is.
/// The tensor lies on the CPU and keeps the mapping alive; writes to it are visible in this mapping only.
///
///     const torch::Tensor images = get_tensor(get_object(config, "images"));
///
/// Throws InvalidArgument if the object is not a tensor, StorageError if it is damaged.
torch::Tensor get_tensor(const Object& object);
/// Makes a module's parameters and buffers views of the object's mapping, without a copy; training copies the pages
/// that it changes. If the module's tensor has another type or device, the values are copied into it and
/// converted, as load_state does. Gradients and optimizers of the module are unchanged.
///
///     load_object(get_object(config, "classifier"), *classifier);
///
/// Throws InvalidArgument that names every parameter which is missing in the object, unknown to the module, or of
/// another shape, and StorageError if the object is damaged or is not a module's state. After an error the module is
/// unchanged.
void load_object(const Object& object, torch::nn::Module& model);

namespace detail {
// The type that TORCH_MODULE(Net) defines: a handle that owns a NetImpl.
template <class T>
concept ModuleHolder = std::derived_from<T, torch::nn::ModuleHolder<typename T::ContainedType>>;

// An optimizer that steps a part of its parameters; other ranks step the rest (train::ShardedOptimizer).
class PartOfOptimizer {
 public:
  virtual ~PartOfOptimizer() = default;
  virtual std::vector<torch::Tensor> whole() const = 0;  // the parameters of all parts
  // Returns, for each parameter of each parameter group of the whole optimizer, whether it is in this part.
  virtual std::vector<std::vector<bool>> are_own() const = 0;
};
}  // namespace detail

/// Calls save_state for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
void save_state(const std::filesystem::path& file, const Holder& model, const torch::optim::Optimizer& optimizer,
                std::int64_t step) {
  save_state(file, *model, optimizer, step);
}
/// Calls save_state without an optimizer, for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
void save_state(const std::filesystem::path& file, const Holder& model, std::int64_t step = 0) {
  save_state(file, *model, step);
}
/// Calls load_state for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
std::int64_t load_state(const std::filesystem::path& file, Holder& model, torch::optim::Optimizer& optimizer) {
  return load_state(file, *model, optimizer);
}
/// Calls load_state for the model only, for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
std::int64_t load_state(const std::filesystem::path& file, Holder& model) {
  return load_state(file, *model);
}

/// Calls put for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
ObjectRef put(const Holder& model) {
  return put(*model);
}
/// Calls load_object for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
void load_object(const Object& object, Holder& model) {
  load_object(object, *model);
}

}  // namespace cadre
