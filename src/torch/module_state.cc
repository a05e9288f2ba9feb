#include "torch/module_state.h"

#include <map>
#include <string>

namespace cadre::pt {
namespace {

std::map<std::string, torch::Tensor> read_tensors(const Container& state_dict, Faults& faults) {
  std::map<std::string, torch::Tensor> tensors;
  for (std::size_t i = 0; i + 1 < state_dict.items.size(); i += 2) {
    const auto* name = state_dict.items[i].get_if<std::string>();
    const auto* tensor = state_dict.items[i + 1].get_if<torch::Tensor>();
    if (name == nullptr) {
      faults.add(std::string("a key of the model's state is ") + state_dict.items[i].kind_name() + ", expected text");
    } else if (tensor == nullptr) {
      faults.add("\"" + *name + "\" is " + state_dict.items[i + 1].kind_name() + ", expected a tensor");
    } else if (!tensors.emplace(*name, *tensor).second) {
      faults.add("\"" + *name + "\" is there twice");
    }
  }
  return tensors;
}

}  // namespace

NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  // A layer without a bias has an undefined tensor for it.
  std::erase_if(tensors, [](const auto& item) { return !item.second.defined(); });
  return tensors;
}

Value module_state(const torch::nn::Module& module) {
  DictBuilder state;
  for (const auto& [name, tensor] : tensors_of(module)) state.add(name, tensor.detach());
  return state.take();
}

void ModuleUpdate::apply() const {
  const torch::NoGradGuard no_grad;
  for (const auto& [target, source] : target_and_source) target.copy_(source);
}

void ModuleUpdate::apply_without_copies() const {
  const torch::NoGradGuard no_grad;
  for (auto [target, source] : target_and_source) {
    if (target.device() == source.device() && target.scalar_type() == source.scalar_type()) {
      target.set_data(source);
    } else {
      target.copy_(source);
    }
  }
}

ModuleUpdate prepare_module_update(const torch::nn::Module& module, const Value& state_dict, Faults& faults) {
  ModuleUpdate update;
  if (state_dict.dict() == nullptr) {
    faults.add(std::string("the model's state is ") + state_dict.kind_name() + ", expected a dictionary");
    return update;
  }
  std::map<std::string, torch::Tensor> saved = read_tensors(*state_dict.dict(), faults);
  for (const auto& [name, tensor] : tensors_of(module)) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      faults.add("\"" + name + "\" " + c10::str(tensor.sizes()) + " of the model is missing in the file");
      continue;
    }
    if (found->second.sizes() != tensor.sizes()) {
      faults.add("\"" + name + "\" has the shape " + c10::str(found->second.sizes()) + " in the file and " +
                 c10::str(tensor.sizes()) + " in the model");
    }
    update.target_and_source.emplace_back(tensor, found->second);
    saved.erase(found);
  }
  for (const auto& [name, tensor] : saved) {
    faults.add("\"" + name + "\" " + c10::str(tensor.sizes()) + " of the file is unknown to the model");
  }
  return update;
}

}  // namespace cadre::pt
