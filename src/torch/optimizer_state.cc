#include "torch/optimizer_state.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "cadre/error.h"
#include "cadre/torch.h"
#include "torch/lbfgs_state.h"
#include "torch/optimizer_kind.h"
#include "torch/parts.h"
#include "torch/plain_value.h"

namespace cadre::pt {
namespace {

using torch::optim::OptimizerParamGroup;

// ---- Options to values.

Value to_value(double value) { return value; }
Value to_value(bool value) { return value; }
Value to_value(const std::tuple<double, double>& value) {
  return make_container(Container::Kind::tuple, {std::get<0>(value), std::get<1>(value)});
}

// Adds options that only the Python class has. The C++ class behaves as if they had these values.
template <class Kind>
void add_python_options(DictBuilder& group) {
  group.add("maximize", false);
  group.add("foreach", Value());
  group.add("differentiable", false);
  if constexpr (!std::same_as<Kind, RMSpropKind>) group.add("fused", Value());
  if constexpr (!std::same_as<Kind, SGDKind> && !std::same_as<Kind, AdagradKind>) group.add("capturable", false);
  if constexpr (std::same_as<Kind, AdamKind> || std::same_as<Kind, AdamWKind>) {
    group.add("decoupled_weight_decay", std::same_as<Kind, AdamWKind>);
  }
}

template <class Kind>
Value options_to_value(const typename Kind::Options& options, std::int64_t first_id, std::size_t parameter_count,
                       const Dict& more) {
  DictBuilder group;
  visit_options(options, [&](const char* name, const auto& value, Range) { group.add(name, to_value(value)); });
  add_python_options<Kind>(group);
  for (const auto& [name, value] : more) group.add(name, to_pt(value));
  std::vector<Value> ids;
  for (std::size_t i = 0; i < parameter_count; ++i) ids.emplace_back(first_id + static_cast<std::int64_t>(i));
  group.add("params", make_container(Container::Kind::list, std::move(ids)));
  return group.take();
}

template <class Kind>
Value state_to_value(const typename Kind::State& state, const typename Kind::Options& options) {
  DictBuilder values;
  visit_state(state, options, [&](const char* name, const auto& value, IfMissing) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, std::int64_t>) {
      values.add(name, torch::tensor(static_cast<double>(value), torch::kFloat));  // Python's type for steps
    } else if (value.defined()) {
      values.add(name, value.detach());
    }
  });
  return values.take();
}

template <class Kind>
Value to_state_dict(const torch::optim::Optimizer& optimizer, const std::function<Dict(std::size_t group)>& more) {
  DictBuilder states;
  std::vector<Value> groups;
  std::int64_t id = 0;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    const auto& options = static_cast<const typename Kind::Options&>(group.options());
    groups.push_back(options_to_value<Kind>(options, id, group.params().size(), more ? more(groups.size()) : Dict()));
    for (const torch::Tensor& parameter : group.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        states.add(id, state_to_value<Kind>(static_cast<const typename Kind::State&>(*found->second), options));
      }
      ++id;
    }
  }
  DictBuilder state_dict;
  state_dict.add("state", states.take());
  state_dict.add("param_groups", make_container(Container::Kind::list, std::move(groups)));
  return state_dict.take();
}

// ---- Values to options and states. Each read_value returns false if the value has another type.

std::optional<double> number_of(const Value& value) {
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
  const auto* tensor = value.get_if<torch::Tensor>();
  if (tensor == nullptr || tensor->numel() != 1 || tensor->is_complex()) return {};
  return tensor->item<double>();
}

bool read_value(const Value& value, double& option) {
  const auto number = number_of(value);
  if (number) option = *number;
  return number.has_value();
}

bool read_value(const Value& value, bool& option) {
  const auto* found = value.get_if<bool>();
  if (found != nullptr) option = *found;
  return found != nullptr;
}

bool read_value(const Value& value, std::tuple<double, double>& option) {
  const Container* const pair = value.tuple() != nullptr ? value.tuple() : value.list();
  return pair != nullptr && pair->items.size() == 2 && read_value(pair->items[0], std::get<0>(option)) &&
         read_value(pair->items[1], std::get<1>(option));
}

bool read_value(const Value& value, std::int64_t& step) {
  constexpr double largest = 9007199254740992;  // 2^53: doubles represent all integers up to here
  const auto number = number_of(value);
  if (!number || !(*number >= 0 && *number <= largest) || std::floor(*number) != *number) return false;
  step = static_cast<std::int64_t>(*number);
  return true;
}

[[noreturn]] void refuse_parts() {
  throw InvalidArgument(
      "the state of this optimizer is divided among the ranks, and each saves its own: with save_shard and load_shards "
      "instead of save_state, save_dict, load_state and load_dict");
}

void check_whole(const torch::optim::Optimizer& optimizer, Partial partial) {
  std::size_t own = 0;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) own += group.params().size();
  const std::vector<torch::Tensor> all = all_parameters(optimizer);
  if (partial == Partial::refused && (all.size() != own || !owners_of_parts(all).empty())) refuse_parts();
}

// The parameters of an optimizer's group among those of a whole optimizer's.
struct GroupPart {
  std::size_t whole_size = 0;
  std::vector<std::size_t> numbers = {};  // of its parameters there
};

std::vector<GroupPart> parts_of(const torch::optim::Optimizer& optimizer, Partial partial) {
  std::vector<std::vector<bool>> are_own;
  const auto* const part = dynamic_cast<const cadre::detail::PartOfOptimizer*>(&optimizer);
  if (part != nullptr && partial == Partial::refused) {
    are_own = part->are_own();
  } else {
    for (const OptimizerParamGroup& group : optimizer.param_groups()) are_own.emplace_back(group.params().size(), true);
  }
  std::vector<GroupPart> parts;
  for (const std::vector<bool>& group : are_own) {
    GroupPart& one = parts.emplace_back(GroupPart{.whole_size = group.size()});
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i]) one.numbers.push_back(i);
    }
  }
  return parts;
}

// Reads the state_dict of one kind of optimizer, of which the optimizer may have parts.
template <class Kind>
class Reader {
 public:
  Reader(std::vector<GroupPart> parts, Faults& faults) : parts_(std::move(parts)), faults_(faults) {}

  OptimizerUpdate read(const torch::optim::Optimizer& optimizer, const Value& state_dict) {
    const Value* const states = state_dict.find("state");
    const Value* const groups = state_dict.find("param_groups");
    if (states == nullptr || states->dict() == nullptr || groups == nullptr || groups->list() == nullptr) {
      faults_.add("the optimizer's state has no dictionary \"state\" and list \"param_groups\"");
      return {};
    }
    index_states(*states->dict());
    const auto& own_groups = optimizer.param_groups();
    const auto& saved_groups = groups->list()->items;
    if (saved_groups.size() != own_groups.size()) {
      faults_.add("the file has " + std::to_string(saved_groups.size()) + " parameter groups, the optimizer " +
                  std::to_string(own_groups.size()));
      return {};
    }
    for (std::size_t i = 0; i < own_groups.size(); ++i) {
      where_ = std::string(Kind::name) + " group " + std::to_string(i);
      read_group(own_groups[i], parts_[i], saved_groups[i]);
    }
    return std::move(update_);
  }

 private:
  void index_states(const Container& states) {
    for (std::size_t i = 0; i + 1 < states.items.size(); i += 2) {
      if (const auto* id = states.items[i].get_if<std::int64_t>()) states_[*id] = &states.items[i + 1];
    }
  }

  void read_group(const OptimizerParamGroup& group, const GroupPart& part, const Value& saved) {
    auto options =
        std::make_unique<typename Kind::Options>(static_cast<const typename Kind::Options&>(group.options()));
    read_options(*options, saved);
    const Value* const ids = saved.find("params");
    if (ids == nullptr || ids->list() == nullptr || ids->list()->items.size() != part.whole_size) {
      faults_.add(where_ + " has " + std::to_string(part.whole_size) + " parameters, the file has " +
                  (ids == nullptr || ids->list() == nullptr ? "none" : std::to_string(ids->list()->items.size())));
      return;
    }
    for (std::size_t i = 0; i < group.params().size(); ++i) {
      const std::size_t number = part.numbers[i];
      const auto* id = ids->list()->items[number].template get_if<std::int64_t>();
      const auto found = id == nullptr ? states_.end() : states_.find(*id);
      if (found != states_.end()) read_state(*found->second, *options, group.params()[i], number);
    }
    update_.group_options.push_back(std::move(options));
  }

  void read_options(typename Kind::Options& options, const Value& saved) {
    visit_options(options, [&](const char* name, auto& option, Range) {
      const Value* const value = saved.find(name);
      if (value == nullptr) {
        faults_.add(where_ + ": the file has no option \"" + name + "\"; was it written by another kind of optimizer?");
      } else if (!read_value(*value, option)) {
        faults_.add(where_ + ": the option \"" + name + "\" is " + value->kind_name());
      }
    });
    check_python_option(saved, "maximize", false);
    if constexpr (std::same_as<Kind, AdamKind> || std::same_as<Kind, AdamWKind>) {
      check_python_option(saved, "decoupled_weight_decay", std::same_as<Kind, AdamWKind>);
    }
  }

  void check_python_option(const Value& saved, const char* name, bool expected) {
    const Value* const value = saved.find(name);
    const bool* const found = value == nullptr ? nullptr : value->template get_if<bool>();
    if (found == nullptr || *found == expected) return;
    faults_.add(where_ + ": the file has the option \"" + name + "\" = " + (*found ? "true" : "false") +
                ", which this optimizer cannot do");
  }

  void read_state(const Value& saved, const typename Kind::Options& options, const torch::Tensor& parameter,
                  std::size_t index) {
    auto state = std::make_unique<typename Kind::State>();
    bool is_empty = true;
    const std::string where = where_ + ", parameter " + std::to_string(index);
    visit_state(*state, options, [&](const char* name, auto& field, IfMissing if_missing) {
      const Value* const value = saved.find(name);
      if (value == nullptr || value->is_none()) {
        if (if_missing == IfMissing::fault) faults_.add(where + ": the file has no \"" + name + "\"");
        return;
      }
      is_empty = false;
      read_field(where + ": \"" + name + "\"", *value, parameter, field);
    });
    // SGD without momentum has no state; it creates the state when it needs one.
    if (is_empty) return;
    complete_state<Kind>(*state, options, parameter);
    update_.parameter_states.emplace_back(parameter, std::move(state));
  }

  void read_field(const std::string& where, const Value& value, const torch::Tensor&, std::int64_t& step) {
    if (!read_value(value, step)) faults_.add(where + " is " + value.kind_name() + ", expected a number of steps");
  }

  void read_field(const std::string& where, const Value& value, const torch::Tensor& parameter, torch::Tensor& field) {
    const auto* tensor = value.get_if<torch::Tensor>();
    if (tensor == nullptr) {
      faults_.add(where + " is " + value.kind_name() + ", expected a tensor");
    } else if (tensor->sizes() != parameter.sizes()) {
      faults_.add(where + " has the shape " + c10::str(tensor->sizes()) + " in the file, the parameter has " +
                  c10::str(parameter.sizes()));
    } else {
      field = tensor->to(parameter.device(), parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    }
  }

  std::vector<GroupPart> parts_;
  Faults& faults_;
  std::string where_;  // for messages
  std::map<std::int64_t, const Value*> states_;
  OptimizerUpdate update_;
};

}  // namespace

std::vector<torch::Tensor> all_parameters(const torch::optim::Optimizer& optimizer) {
  if (const auto* const part = dynamic_cast<const cadre::detail::PartOfOptimizer*>(&optimizer)) return part->whole();
  std::vector<torch::Tensor> all;
  for (const OptimizerParamGroup& group : optimizer.param_groups())
    all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

Value optimizer_state(const torch::optim::Optimizer& optimizer, const std::function<Dict(std::size_t group)>& more,
                      Partial partial) {
  check_whole(optimizer, partial);
  if (const auto* const lbfgs = dynamic_cast<const torch::optim::LBFGS*>(&optimizer)) return lbfgs_state(*lbfgs, more);
  return with_kind(optimizer, [&](auto kind) { return to_state_dict<decltype(kind)>(optimizer, more); });
}

void OptimizerUpdate::apply(torch::optim::Optimizer& optimizer) {
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].set_options(std::move(group_options[i]));
  optimizer.state().clear();
  for (auto& [parameter, state] : parameter_states) {
    optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }
}

OptimizerUpdate prepare_optimizer_update(const torch::optim::Optimizer& optimizer, const Value& state_dict,
                                         Faults& faults, Partial partial) {
  if (partial == Partial::refused && !owners_of_parts(all_parameters(optimizer)).empty()) refuse_parts();
  if (const auto* const lbfgs = dynamic_cast<const torch::optim::LBFGS*>(&optimizer))
    return prepare_lbfgs_update(*lbfgs, state_dict, faults);
  return with_kind(optimizer, [&](auto kind) {
    return Reader<decltype(kind)>(parts_of(optimizer, partial), faults).read(optimizer, state_dict);
  });
}

}  // namespace cadre::pt
