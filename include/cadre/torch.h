/// \file
/// A model's and an optimizer's state as one file, hyper-parameters into an optimizer, and tensors and modules in the
/// object store.
///
/// The files are those of Python's torch.save: torch.load(file, weights_only=True) reads what save_state wrote, and
/// load_state reads what torch.save wrote (PyTorch 1.6 and newer) without ever running code of it.
///
/// Threads: any, but a model, an optimizer and a file only in one at a time.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstdint>
#include <filesystem>

#include "cadre/error.h"
#include "cadre/object.h"
#include "cadre/value.h"

namespace cadre {

/// Writes {"model": state_dict, "optimizer": state_dict, "step": step}. The model's part has its parameters and buffers
/// under the names that Python gives them; the optimizer's part has the layout of Python's, so that load_state_dict of
/// the Python classes takes both. Tensors on other devices are copied to the CPU. An existing file is replaced; nothing
/// is synced to disk, which is what reporting a checkpoint does.
/// Knows SGD, Adam, AdamW, RMSprop and Adagrad. Throws InvalidArgument for another optimizer and for a tensor that is
/// sparse or quantized, StorageError (OutOfSpace on a full disk) when the file cannot be written; what is left of it is
/// then of no use.
void save_state(const std::filesystem::path& file, const torch::nn::Module& model,
                const torch::optim::Optimizer& optimizer, std::int64_t step);
/// The same without an optimizer: the file has no "optimizer".
void save_state(const std::filesystem::path& file, const torch::nn::Module& model, std::int64_t step = 0);

/// Reads a file of save_state or of Python's torch.save into a model and an optimizer that have the same structure, and
/// returns its step (0 where it has none). Values are copied into the model's own tensors, whatever their device, and
/// converted to their type. The optimizer gets the file's options (learning rate and the like) and state; its groups
/// and parameters must be as many, of the same shapes. When the file was written by another kind of optimizer, or has a
/// state that this one cannot use, that is an error.
/// Throws NotFound where there is no file; StorageError, with file and offset, when it is damaged, cut, or holds
/// anything but dictionaries, lists, numbers, text and tensors; InvalidArgument that names every parameter which is
/// missing in the file, unknown to the model, or of another shape (both shapes are shown). Model and optimizer are then
/// as before.
std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer);
/// The same for the model only. The file may also be the model's state_dict alone.
std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model);

/// Sets those entries of a config that are options of the optimizer, in all of its parameter groups:
///
/// | optimizer | entries |
/// |---|---|
/// | SGD | lr, momentum, dampening, weight_decay, nesterov |
/// | Adam, AdamW | lr, betas (a list of two), eps, weight_decay, amsgrad |
/// | RMSprop | lr, alpha, eps, weight_decay, momentum, centered |
/// | Adagrad | lr, lr_decay, eps, weight_decay |
///
/// Other entries are not looked at. Throws InvalidArgument that names every value of a wrong type or outside its range
/// (the ranges are those of the Python classes); then nothing was set.
void set_hyperparameters(torch::optim::Optimizer& optimizer, const Config& config);

/// Puts a tensor into the object store (cadre/object.h), with its type and shape, and without its gradient; a tensor on
/// another device is copied to the CPU. The object is a safetensors file with one tensor, "tensor", that Python's
/// safetensors reads. Throws InvalidArgument for a tensor that is undefined, sparse or quantized, or of a type that
/// such files do not have; StorageError where the system does not give the memory.
ObjectRef put(const torch::Tensor& tensor);
/// The same of a module's state: its parameters and buffers under the names that Python gives them.
ObjectRef put(const torch::nn::Module& module);

/// The tensor that was put, as a view of the object's mapping: nothing is copied or read, however large it is. It lies
/// on the CPU and keeps the mapping; what is written to it nobody else sees.
///
///     const torch::Tensor images = get_tensor(get_object(config, "images"));
///
/// Throws InvalidArgument where the object is no tensor, StorageError where it is damaged.
torch::Tensor get_tensor(const Object& object);
/// Makes a module's parameters and buffers views of the object's mapping, without a copy; training them copies the
/// pages that it changes. Where the module's tensor is of another type or on another device, the values are copied into
/// it and converted, as load_state does. Gradients and optimizers of the module stay as they are.
///
///     load_object(get_object(config, "classifier"), *classifier);
///
/// Throws InvalidArgument that names every parameter which is missing in the object, unknown to the module, or of
/// another shape, and StorageError where the object is damaged or no module's state. The module is then as before.
void load_object(const Object& object, torch::nn::Module& model);

namespace detail {
// What TORCH_MODULE(Net) makes: a handle that owns a NetImpl.
template <class T>
concept ModuleHolder = std::derived_from<T, torch::nn::ModuleHolder<typename T::ContainedType>>;
}  // namespace detail

/// save_state for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
void save_state(const std::filesystem::path& file, const Holder& model, const torch::optim::Optimizer& optimizer,
                std::int64_t step) {
  save_state(file, *model, optimizer, step);
}
/// save_state without an optimizer, for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
void save_state(const std::filesystem::path& file, const Holder& model, std::int64_t step = 0) {
  save_state(file, *model, step);
}
/// load_state for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
std::int64_t load_state(const std::filesystem::path& file, Holder& model, torch::optim::Optimizer& optimizer) {
  return load_state(file, *model, optimizer);
}
/// load_state for the model only, for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
std::int64_t load_state(const std::filesystem::path& file, Holder& model) {
  return load_state(file, *model);
}

/// put for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
ObjectRef put(const Holder& model) {
  return put(*model);
}
/// load_object for the handles that TORCH_MODULE makes.
template <detail::ModuleHolder Holder>
void load_object(const Object& object, Holder& model) {
  load_object(object, *model);
}

}  // namespace cadre
