// The header of a safetensors file: which tensors it has, and where. Source: the format's description by Hugging Face,
// https://github.com/huggingface/safetensors. Knows nothing of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::pt {

// A tensor's place in such a file.
struct StoredTensor {
  std::string name = {};
  std::string dtype = {};  // "F32"
  std::vector<std::int64_t> shape = {};
  std::size_t offset = 0;  // of its elements, in row-major order, from the end of the header
  std::size_t size_bytes = 0;

  bool operator==(const StoredTensor&) const = default;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors = {};
  std::size_t size_bytes = 0;  // where the tensors begin
};

// Of an element of this type; 0 for a type that is unknown.
std::size_t element_bytes(std::string_view dtype);

// The size of the header, the header as JSON, and spaces, so that the tensors begin at a multiple of 64 bytes. Offsets
// are made here: those with larger elements come first, and each follows the one before it without a gap, so that all
// are aligned. `tensors` get them, and this order.
std::string make_safetensors_header(std::vector<StoredTensor>& tensors);

// Reads the header of a file that is there as a whole; `source` names it in messages. Throws StorageError that names
// the tensor for what is no such file, is cut, or has elements that are not aligned, overlap or leave gaps.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& source);

}  // namespace cadre::pt
