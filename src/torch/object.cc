#include "cadre/object.h"

#include "cadre/torch.h"
#include "torch/faults.h"
#include "torch/module_state.h"
#include "torch/safetensors_header.h"
#include "torch/stored_tensors.h"

namespace cadre {
namespace {

constexpr const char* kOnlyTensor = "tensor";
constexpr const char* kSource = "the object";

ObjectRef put_tensors(const pt::NamedTensors& named) { return put_pieces(pt::to_pieces(named).bytes()); }

// Returns a view of the mapping, which stays alive as long as the tensor.
torch::Tensor view_of(const Object& object, const pt::SafetensorsHeader& header, const pt::StoredTensor& stored) {
  const auto options = torch::TensorOptions(pt::scalar_type(stored, kSource));
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
