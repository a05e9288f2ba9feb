#include <string>
#include <utility>

#include "cadre/torch.h"
#include "torch/faults.h"
#include "torch/module_state.h"
#include "torch/optimizer_state.h"
#include "torch/pt_file.h"

namespace cadre {
namespace {

// Returns true for a dictionary of tensors only, as torch.save(model.state_dict()) writes.
bool is_state_dict(const pt::Value& content) {
  const pt::Container* const entries = content.dict();
  if (entries == nullptr) return false;
  for (std::size_t i = 1; i < entries->items.size(); i += 2) {
    if (entries->items[i].get_if<torch::Tensor>() == nullptr) return false;
  }
  return true;
}

const pt::Value& model_of(const std::filesystem::path& file, const pt::Value& content) {
  const pt::Value* const model = content.find("model");
  if (model != nullptr && model->dict() != nullptr) return *model;
  if (is_state_dict(content)) return content;
  throw InvalidArgument(file.string() + " has neither a dictionary \"model\" nor is it a state_dict");
}

std::int64_t step_of(const std::filesystem::path& file, const pt::Value& content) {
  const pt::Value* const step = content.find("step");
  if (step == nullptr || step->get_if<torch::Tensor>() != nullptr) return 0;
  if (const auto* number = step->get_if<std::int64_t>()) return *number;
  throw InvalidArgument(file.string() + ": \"step\" is " + step->kind_name() + ", expected an integer");
}

std::int64_t load(const std::filesystem::path& file, torch::nn::Module& model, torch::optim::Optimizer* optimizer) {
  const pt::Value content = pt::read_file(file);
  const std::int64_t step = step_of(file, content);
  pt::Faults faults;
  pt::OptimizerUpdate optimizer_update;
  const pt::ModuleUpdate model_update = pt::prepare_module_update(model, model_of(file, content), faults);
  if (optimizer != nullptr) {
    const pt::Value* const saved = content.find("optimizer");
    if (saved == nullptr) throw InvalidArgument(file.string() + " has no state of an optimizer");
    optimizer_update = pt::prepare_optimizer_update(*optimizer, *saved, faults);
  }
  faults.throw_if_any("cannot load " + file.string());
  model_update.apply();
  if (optimizer != nullptr) optimizer_update.apply(*optimizer);
  return step;
}

}  // namespace

void save_state(const std::filesystem::path& file, const torch::nn::Module& model,
                const torch::optim::Optimizer& optimizer, std::int64_t step) {
  pt::DictBuilder content;
  content.add("model", pt::module_state(model));
  content.add("optimizer", pt::optimizer_state(optimizer));
  content.add("step", step);
  pt::write_file(file, content.take());
}

void save_state(const std::filesystem::path& file, const torch::nn::Module& model, std::int64_t step) {
  pt::DictBuilder content;
  content.add("model", pt::module_state(model));
  content.add("step", step);
  pt::write_file(file, content.take());
}

std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer) {
  return load(file, model, &optimizer);
}

std::int64_t load_state(const std::filesystem::path& file, torch::nn::Module& model) {
  return load(file, model, nullptr);
}

}  // namespace cadre
