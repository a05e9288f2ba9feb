#include "cadre/object.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/torch.h"
#include "torch/faults.h"
#include "torch/module_state.h"
#include "torch/safetensors_header.h"

namespace cadre {
namespace {

constexpr const char* kOnlyTensor = "tensor";
constexpr const char* kSource = "the object";

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
                        ", which the object store has no tensors of");
}

at::ScalarType scalar_type(const std::string& dtype) {
  const auto type = std::ranges::find(kTypes, dtype, [](const auto& entry) { return std::string_view(entry.second); });
  if (type != kTypes.end()) return type->first;
  throw StorageError("cannot read an object's tensor of type " + dtype + ": libtorch has no such tensors");
}

// Returns the tensor on the CPU, contiguous in row-major order. Throws InvalidArgument if it cannot be stored.
torch::Tensor as_stored(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument("\"" + name + "\" is an undefined tensor, which cannot be put");
  if (tensor.layout() != at::kStrided || tensor.is_quantized())
    throw InvalidArgument("\"" + name + "\" is a sparse or quantized tensor, which cannot be put");
  return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
}

ObjectRef put_tensors(const pt::NamedTensors& named) {
  std::vector<pt::StoredTensor> stored;
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [name, tensor] : named) {
    const torch::Tensor& plain = tensors[name] = as_stored(name, tensor);
    stored.push_back({name, dtype_of(name, plain), plain.sizes().vec(), 0, plain.nbytes()});
  }
  const std::string header = pt::make_safetensors_header(stored);
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header))};
  for (const pt::StoredTensor& tensor : stored)
    pieces.emplace_back(static_cast<const std::byte*>(tensors.at(tensor.name).const_data_ptr()), tensor.size_bytes);
  return put_pieces(pieces);
}

// Returns a view of the mapping, which stays alive as long as the tensor.
torch::Tensor view_of(const Object& object, const pt::SafetensorsHeader& header, const pt::StoredTensor& stored) {
  const auto options = torch::TensorOptions(scalar_type(stored.dtype));
  if (stored.size_bytes == 0) return torch::empty(stored.shape, options);
  std::byte* const elements = object.bytes().data() + header.size_bytes + stored.offset;
  return torch::from_blob(elements, stored.shape, [object](void*) {}, options);
}

}  // namespace

ObjectRef put(const torch::Tensor& tensor) { return put_tensors({{kOnlyTensor, tensor}}); }

ObjectRef put(const torch::nn::Module& module) { return put_tensors(pt::tensors_of(module)); }

torch::Tensor get_tensor(const Object& object) {
  const pt::SafetensorsHeader header = pt::read_safetensors_header(object.bytes(), kSource);
  if (header.tensors.size() != 1 || header.tensors[0].name != kOnlyTensor)
    throw InvalidArgument("the object is not one tensor that was put by itself; load_object takes a module's state");
  return view_of(object, header, header.tensors[0]);
}

void load_object(const Object& object, torch::nn::Module& model) {
  const pt::SafetensorsHeader header = pt::read_safetensors_header(object.bytes(), kSource);
  pt::DictBuilder state;
  for (const pt::StoredTensor& stored : header.tensors) state.add(stored.name, view_of(object, header, stored));
  pt::Faults faults;
  const pt::ModuleUpdate update = pt::prepare_module_update(model, state.take(), faults);
  faults.throw_if_any("cannot load the object");
  update.apply_without_copies();
}

}  // namespace cadre
