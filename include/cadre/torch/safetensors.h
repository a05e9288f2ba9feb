/// \file
/// Weights in files of Hugging Face's format safetensors, which Python reads by `safetensors.torch.load_file`, and
/// in which programs of all kinds share trained models. They have tensors alone: save_dict (cadre/torch/save_dict.h)
/// writes everything that a training consists of.
///
/// Source: the format's description, https://github.com/huggingface/safetensors.
///
/// Threads: any, but each model and file in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <filesystem>

#include "cadre/torch.h"

namespace cadre {

/// Writes a model's parameters and buffers under the names that Python gives them. Tensors on other devices are copied
/// to the CPU. A tensor that several names share is written under the first one, and the file's metadata map the others
/// to it, as Python's save_model does. An existing file is replaced. The file is not synced to disk; reporting a
/// checkpoint does that. Throws InvalidArgument for a tensor that is sparse or quantized or of a type that the format
/// lacks; StorageError (OutOfSpace on a full disk) if the file cannot be written; a partial file is then unusable.
void save_safetensors(const std::filesystem::path& file, const torch::nn::Module& model);
/// Does the same for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
void save_safetensors(const std::filesystem::path& file, const Holder& model) {
  save_safetensors(file, *model);
}

/// Reads such a file into a model of the same structure. Values are copied into the model's own tensors, whatever their
/// device, and converted to their type. `file` may also be the index of a model in several files,
/// "model.safetensors.index.json", which lie beside it. One of the names that share a tensor in the model is enough.
/// Throws NotFound if there is no file; StorageError that names file and tensor if one is damaged or truncated, or if
/// the index names a file for a tensor that another one has; InvalidArgument that names every parameter which is
/// missing in the file, unknown to the model, or of another shape. After an error the model is unchanged.
void load_safetensors(const std::filesystem::path& file, torch::nn::Module& model);
/// Does the same for a handle of TORCH_MODULE.
template <detail::ModuleHolder Holder>
void load_safetensors(const std::filesystem::path& file, Holder& model) {
  load_safetensors(file, *model);
}

}  // namespace cadre
