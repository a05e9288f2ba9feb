// The header of a safetensors file, which lists the tensors and their places. Source: the format's description by
// Hugging Face, https://github.com/huggingface/safetensors. Does not depend on torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::pt {

// A tensor's place in such a file.
struct StoredTensor {
  std::string name = {};
  std::string dtype = {};  // "F32"
  std::vector<std::int64_t> shape = {};
  std::size_t offset = 0;  // of its elements (row-major), from the end of the header
  std::size_t size_bytes = 0;

  bool operator==(const StoredTensor&) const = default;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors = {};
  std::size_t size_bytes = 0;  // offset of the tensors in the file
};

// Returns the size of an element in bytes; 0 for an unknown type.
std::size_t element_bytes(std::string_view dtype);

// Returns the header's size, the header as JSON, and spaces up to a multiple of 64 bytes, where the tensors begin.
// Sorts `tensors` by descending element size and sets their offsets without gaps, so that all elements are aligned.
// `metadata` are texts by name. Throws InvalidArgument for a reserved name or a header that is too large.
std::string make_safetensors_header(std::vector<StoredTensor>& tensors, const Dict& metadata = {});

// Bytes before the JSON, which are its length.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
// Returns the length of the JSON of a file that begins with these. Throws StorageError if it is no such file.
std::size_t safetensors_json_bytes(std::span<const std::byte> file_begin, std::uint64_t file_bytes,
                                   const std::string& source);

enum class Alignment { needed, any };
// Parses the JSON; otherwise as below. Elements that lie at any place can be copied, but not used where they are.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes, Alignment alignment,
                                           const std::string& source);

// Parses the header of a complete file; `source` names it in messages. Throws StorageError that names the tensor if
// the file is not a safetensors file, is truncated, or has elements that are not aligned, overlap or leave gaps.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& source);

}  // namespace cadre::pt
