/// \file
/// A model's and an optimizer's state as one file, and hyper-parameters into an optimizer.
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

}  // namespace cadre
