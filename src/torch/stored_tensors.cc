#include "torch/stored_tensors.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cadre/error.h"

namespace cadre::pt {
namespace {

constexpr std::array<std::pair<at::ScalarType, const char*>, 16> kTypes{{{at::kBool, "BOOL"},
                                                                         {at::kByte, "U8"},
                                                                         {at::kChar, "I8"},
                                                                         {at::kFloat8_e4m3fn, "F8_E4M3"},
                                                                         {at::kFloat8_e5m2, "F8_E5M2"},
                                                                         {at::kUInt16, "U16"},
                                                                         {at::kShort, "I16"},
                                                                         {at::kHalf, "F16"},
                                                                         {at::kBFloat16, "BF16"},
                                                                         {at::kUInt32, "U32"},
                                                                         {at::kInt, "I32"},
                                                                         {at::kFloat, "F32"},
                                                                         {at::kUInt64, "U64"},
                                                                         {at::kLong, "I64"},
                                                                         {at::kDouble, "F64"},
                                                                         {at::kComplexFloat, "C64"}}};

const char* dtype_of(const std::string& name, const torch::Tensor& tensor) {
  const auto type = std::ranges::find(kTypes, tensor.scalar_type(), [](const auto& entry) { return entry.first; });
  if (type != kTypes.end()) return type->second;
  throw InvalidArgument("\"" + name + "\" has the type " + at::toString(tensor.scalar_type()) +
                        ", which cannot be stored");
}

// Returns the tensor on the CPU, contiguous in row-major order. Throws InvalidArgument if it cannot be stored.
torch::Tensor as_stored(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument("\"" + name + "\" is an undefined tensor, which cannot be stored");
  if (tensor.layout() != at::kStrided || tensor.is_quantized())
    throw InvalidArgument("\"" + name + "\" is a sparse or quantized tensor, which cannot be stored");
  return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
}

}  // namespace

std::vector<std::span<const std::byte>> TensorPieces::bytes() const {
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header))};
  for (const torch::Tensor& tensor : tensors)
    pieces.emplace_back(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes());
  return pieces;
}

TensorPieces to_pieces(const NamedTensors& named, const Dict& metadata) {
  std::vector<StoredTensor> stored;
  std::map<std::string, torch::Tensor> by_name;
  for (const auto& [name, tensor] : named) {
    const torch::Tensor& plain = by_name[name] = as_stored(name, tensor);
    stored.push_back({name, dtype_of(name, plain), plain.sizes().vec(), 0, plain.nbytes()});
  }
  TensorPieces pieces{.header = make_safetensors_header(stored, metadata)};
  for (const StoredTensor& tensor : stored) pieces.tensors.push_back(by_name.at(tensor.name));
  return pieces;
}

at::ScalarType scalar_type(const StoredTensor& stored, const std::string& source) {
  const auto type =
      std::ranges::find(kTypes, stored.dtype, [](const auto& entry) { return std::string_view(entry.second); });
  if (type != kTypes.end()) return type->first;
  throw StorageError("cannot read " + source + ": the tensor \"" + stored.name + "\" has the type " + stored.dtype +
                     ", which libtorch has no tensors of");
}

}  // namespace cadre::pt
