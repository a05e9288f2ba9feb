#include "torch/distributed/model_parts.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <utility>

namespace cadre::distributed {
namespace {

using torch::Tensor;

pt::Value list_of(std::vector<pt::Value> items) {
  return pt::make_container(pt::Container::Kind::list, std::move(items));
}

template <class T>
const T* find_in(const pt::Value& dict, const std::string& name) {
  const pt::Value* const value = dict.find(name);
  return value == nullptr ? nullptr : value->get_if<T>();
}

std::string text_of(const std::vector<std::int64_t>& shape) { return c10::str(at::IntArrayRef(shape)); }

}  // namespace

pt::Value to_value(const ParameterParts& parts) {
  pt::DictBuilder parameters;
  for (const auto& [name, part] : parts) {
    pt::DictBuilder parameter;
    parameter.add("shape", list_of({part.shape.begin(), part.shape.end()}));
    parameter.add("begin", part.range.begin);
    parameter.add("values", part.values.detach().clone());
    parameters.add(name, parameter.take());
  }
  return parameters.take();
}

pt::Value to_value(const NamesByGroup& names) {
  std::vector<pt::Value> groups;
  for (const std::vector<std::string>& group : names) groups.push_back(list_of({group.begin(), group.end()}));
  return list_of(std::move(groups));
}

// ---- Reading

PartsReader::Elements::Elements(ElementRange wanted, const torch::TensorOptions& options)
    : wanted(wanted), values(torch::zeros({wanted.size()}, options.device(torch::kCPU).requires_grad(false))) {}

void PartsReader::Elements::take(const Tensor& row, std::int64_t begin) {
  const std::int64_t first = std::max(begin, wanted.begin);
  const std::int64_t last = std::min(begin + row.numel(), wanted.end);
  if (first >= last) return;
  values.narrow(0, first - wanted.begin, last - first).copy_(row.narrow(0, first - begin, last - first));
  taken += last - first;
}

PartsReader::PartsReader(ParameterParts parts, std::optional<NamesByGroup> optimizer_names)
    : parts_(std::move(parts)), optimizer_names_(std::move(optimizer_names)) {
  for (const auto& [name, part] : parts_) values_.try_emplace(name, part.range, part.values.options());
}

const Tensor* PartsReader::buffer(const std::string& name) const { return find_in<Tensor>(buffers_, name); }

void PartsReader::read(const Shard& shard) {
  const torch::NoGradGuard no_gradients;
  rows_.clear();
  const pt::Container* const entries = shard.at("parameters").dict();
  if (entries == nullptr) shard.refuse("it is not the part of a model that save_shard writes");
  for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
    const auto* const name = entries->items[i].get_if<std::string>();
    if (name != nullptr) read_parameter(shard, *name, entries->items[i + 1]);
  }
  const auto* const passes = shard.at("backward_passes").get_if<std::int64_t>();
  if (passes == nullptr || *passes < 0) shard.refuse("its \"backward_passes\" is not a number of them");
  if (!backward_passes_) backward_passes_ = *passes;
  if (*backward_passes_ != *passes) {
    shard.refuse("it does not belong to the files before it: it was written after " + std::to_string(*passes) +
                 " backward passes, and they after " + std::to_string(*backward_passes_));
  }
  if (const pt::Value* const buffers = shard.content.find("buffers")) buffers_ = *buffers;
  if (optimizer_names_) read_states(shard);
}

void PartsReader::read_parameter(const Shard& shard, const std::string& name, const pt::Value& entry) {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    if (seen_.insert(name).second) mismatches_.push_back("\"" + name + "\" of the files is unknown to the model");
    return;
  }
  seen_.insert(name);
  const Tensor* const row = find_in<Tensor>(entry, "values");
  const pt::Value* const shape_entry = entry.find("shape");
  const pt::Container* const shape_list = shape_entry == nullptr ? nullptr : shape_entry->list();
  const pt::Value* const begin_entry = entry.find("begin");
  const auto* const begin = begin_entry == nullptr ? nullptr : begin_entry->get_if<std::int64_t>();
  if (row == nullptr || row->dim() != 1 || shape_list == nullptr || begin == nullptr || *begin < 0)
    shard.refuse("its \"" + name + "\" is no part of a parameter");
  std::vector<std::int64_t> shape;
  for (const pt::Value& item : shape_list->items) {
    const auto* const size = item.get_if<std::int64_t>();
    if (size == nullptr) shard.refuse("the shape of its \"" + name + "\" is not one of whole numbers");
    shape.push_back(*size);
  }
  if (shape != parts_.at(name).shape) {
    if (refused_.insert(name).second)
      mismatches_.push_back("\"" + name + "\" has the shape " + text_of(shape) + " in the files and " +
                            text_of(parts_.at(name).shape) + " in the model");
    return;
  }
  if (*begin > c10::multiply_integers(shape) - row->numel())
    shard.refuse("its \"" + name + "\" has elements beyond the end of the parameter");
  std::int64_t& end = ends_[name];
  if (row->numel() > 0 && std::exchange(end, *begin + row->numel()) > *begin)
    shard.refuse("it does not belong to the files before it, which have elements of \"" + name + "\" that it has too");
  rows_[name] = {*begin, row->numel()};
  found->second.take(*row, *begin);
}

void PartsReader::read_states(const Shard& shard) {
  const pt::Container* const groups = shard.at("optimizer_parameters").list();
  if (groups == nullptr || groups->items.size() != optimizer_names_->size())
    shard.refuse("its optimizer has another number of groups than the " + std::to_string(optimizer_names_->size()) +
                 " here");
  std::int64_t number = 0;
  for (std::size_t group = 0; group < groups->items.size(); ++group) {
    const pt::Container* const names = groups->items[group].list();
    if (names == nullptr) shard.refuse("the parameters of its optimizer are no lists");
    const std::vector<std::string>& expected = (*optimizer_names_)[group];
    for (std::size_t i = 0; i < std::max(names->items.size(), expected.size()); ++i) {
      const auto* const name = i < names->items.size() ? names->items[i].get_if<std::string>() : nullptr;
      if (name == nullptr || i >= expected.size() || *name != expected[i])
        shard.refuse("its optimizer has other parameters in group " + std::to_string(group) +
                     " than the one here: " + (name == nullptr ? "none" : *name) + " in place of " +
                     (i < expected.size() ? expected[i] : "none"));
      if (const pt::Value* const state = find_number(shard.at("optimizer", "state"), number++))
        read_state(*name, *state);
    }
  }
}

// A field with as many elements as the part of the parameter in that file has one for each of them.
void PartsReader::read_state(const std::string& name, const pt::Value& state) {
  const auto row = rows_.find(name);
  const pt::Container* const fields = state.dict();
  if (fields == nullptr || row == rows_.end()) return;
  have_state_.insert(name);
  for (std::size_t i = 0; i + 1 < fields->items.size(); i += 2) {
    const auto* const field = fields->items[i].get_if<std::string>();
    if (field == nullptr) continue;
    const auto* const tensor = fields->items[i + 1].get_if<Tensor>();
    if (tensor == nullptr || tensor->dim() != 1 || tensor->numel() != row->second.size) {
      other_fields_[name].insert_or_assign(*field, fields->items[i + 1]);
      continue;
    }
    const auto [place, is_new] = states_[name].try_emplace(*field, parts_.at(name).range, tensor->options());
    place->second.take(*tensor, row->second.begin);
  }
}

void PartsReader::add_faults(pt::Faults& faults) const {
  for (const auto& [name, elements] : values_) {
    if (!seen_.contains(name)) {
      faults.add("\"" + name + "\" " + text_of(parts_.at(name).shape) + " of the model is missing in the files");
    } else if (!elements.are_complete() && !refused_.contains(name)) {
      faults.add("elements of \"" + name + "\" are in no file");
    }
  }
  for (const auto& [name, fields] : states_) {
    for (const auto& [field, elements] : fields) {
      if (!elements.are_complete())
        faults.add("elements of the optimizer's \"" + field + "\" of " + name + " are in no file");
    }
  }
  for (const std::string& mismatch : mismatches_) faults.add(mismatch);
}

pt::Value PartsReader::state_of(const std::string& name) const {
  pt::DictBuilder fields;
  if (const auto found = other_fields_.find(name); found != other_fields_.end())
    for (const auto& [field, value] : found->second) fields.add(field, value);
  if (const auto found = states_.find(name); found != states_.end())
    for (const auto& [field, elements] : found->second) fields.add(field, elements.values);
  return fields.take();
}

pt::Value PartsReader::optimizer_state(const Shard& last) const {
  pt::DictBuilder states;
  std::vector<pt::Value> groups;
  std::int64_t number = 0;
  for (std::size_t group = 0; group < optimizer_names_->size(); ++group) {
    std::vector<pt::Value> numbers;
    for (const std::string& name : (*optimizer_names_)[group]) {
      if (have_state_.contains(name)) states.add(number, state_of(name));
      numbers.emplace_back(number++);
    }
    groups.push_back(group_options(last, group, std::move(numbers)));
  }
  pt::DictBuilder whole;
  whole.add("state", states.take());
  whole.add("param_groups", list_of(std::move(groups)));
  return whole.take();
}

}  // namespace cadre::distributed
