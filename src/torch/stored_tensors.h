// Tensors as the elements of a safetensors file: of a file, or of an object in memory.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "torch/module_state.h"
#include "torch/safetensors_header.h"

namespace cadre::pt {

// The pieces of a file, one after the other.
struct TensorPieces {
  std::string header = {};
  std::vector<torch::Tensor> tensors = {};

  // Returns their bytes, which are valid as long as this object.
  std::vector<std::span<const std::byte>> bytes() const;
};

// Copies tensors to the CPU where they are elsewhere. `metadata` are texts by name. Throws InvalidArgument for a tensor
// that is undefined, sparse, quantized or of a type that the format lacks.
TensorPieces to_pieces(const NamedTensors& named, const Dict& metadata = {});

// Returns the type of a tensor's elements. Throws StorageError for one that libtorch lacks.
at::ScalarType scalar_type(const StoredTensor& stored, const std::string& source);

}  // namespace cadre::pt
