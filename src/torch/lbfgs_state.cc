#include "torch/lbfgs_state.h"

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torch/plain_value.h"

namespace cadre::pt {
namespace {

using Options = torch::optim::LBFGSOptions;
using State = torch::optim::LBFGSParamState;

// Calls visit(name, reference) for each option, in the order of the Python class.
template <class OptionsOrConst, class Visit>
void visit_lbfgs_options(OptionsOrConst& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("max_iter", options.max_iter());
  visit("max_eval", options.max_eval());
  visit("tolerance_grad", options.tolerance_grad());
  visit("tolerance_change", options.tolerance_change());
  visit("history_size", options.history_size());
  visit("line_search_fn", options.line_search_fn());
}

// Calls visit(name, reference) for each value of the state.
template <class StateOrConst, class Visit>
void visit_lbfgs_state(StateOrConst& state, const Visit& visit) {
  visit("func_evals", state.func_evals());
  visit("n_iter", state.n_iter());
  visit("al", state.al());
  visit("d", state.d());
  visit("t", state.t());
  visit("old_dirs", state.old_dirs());
  visit("old_stps", state.old_stps());
  visit("ro", state.ro());
  visit("H_diag", state.H_diag());
  visit("prev_flat_grad", state.prev_flat_grad());
  visit("prev_loss", state.prev_loss());
}

Value lbfgs_value(double number) { return number; }
Value lbfgs_value(std::int64_t number) { return number; }
Value lbfgs_value(const std::optional<std::int64_t>& number) { return number ? Value(*number) : Value(); }
Value lbfgs_value(const std::optional<std::string>& text) { return text ? Value(*text) : Value(); }
Value lbfgs_value(const torch::Tensor& tensor) { return tensor.defined() ? Value(tensor.detach()) : Value(); }
template <class Tensors>
Value list_of(const Tensors& tensors) {
  std::vector<Value> items;
  for (const torch::Tensor& tensor : tensors) items.push_back(lbfgs_value(tensor));
  return make_container(Container::Kind::list, std::move(items));
}
Value lbfgs_value(const std::deque<torch::Tensor>& tensors) { return list_of(tensors); }
Value lbfgs_value(const std::optional<std::vector<torch::Tensor>>& tensors) {
  return tensors ? list_of(*tensors) : Value();
}

// Reads values; each read() returns false for a value of another type. In Python's states "t" may be a tensor of one
// number, and "H_diag" is a number in the first iteration.
struct LbfgsReader {
  const torch::Tensor& parameter;  // whose device and type tensors get

  static bool read(const Value& value, double& number) {
    if (const auto* found = value.get_if<torch::Tensor>()) {
      if (found->numel() != 1 || found->is_complex()) return false;
      number = found->item<double>();
      return true;
    }
    if (const auto* found = value.get_if<double>()) return number = *found, true;
    const auto* const integer = value.get_if<std::int64_t>();
    if (integer != nullptr) number = static_cast<double>(*integer);
    return integer != nullptr;
  }
  static bool read(const Value& value, std::int64_t& number) {
    const auto* const found = value.get_if<std::int64_t>();
    if (found != nullptr) number = *found;
    return found != nullptr && *found >= 0;
  }
  static bool read(const Value& value, std::optional<std::int64_t>& number) { return read(value, number.emplace()); }
  static bool read(const Value& value, std::optional<std::string>& text) {
    const auto* const found = value.get_if<std::string>();
    if (found != nullptr) text = *found;
    return found != nullptr;
  }
  bool read(const Value& value, torch::Tensor& tensor) const {
    if (const auto* const found = value.get_if<torch::Tensor>()) {
      tensor = found->to(parameter.device(), parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      return true;
    }
    double number = 0;
    if (!read(value, number)) return false;
    tensor = torch::scalar_tensor(number, parameter.options());
    return true;
  }
  bool read(const Value& value, std::deque<torch::Tensor>& tensors) const {
    const Container* const items = value.list();
    if (items == nullptr) return false;
    tensors.clear();
    for (const Value& item : items->items) {
      if (!read(item, tensors.emplace_back())) return false;
    }
    return true;
  }
  bool read(const Value& value, std::optional<std::vector<torch::Tensor>>& tensors) const {
    const Container* const items = value.list();
    if (items == nullptr) return false;
    tensors.emplace();
    for (const Value& item : items->items) {
      torch::Tensor& tensor = tensors->emplace_back();
      if (!item.is_none() && !read(item, tensor)) return false;
    }
    return true;
  }
};

// Adds a fault if the parts of a state do not belong together: the next step would end with an error of libtorch's, or
// write beyond "al", which has as many elements as history_size says.
void check(const State& state, const Options& options, std::int64_t numbers, Faults& faults) {
  const auto has_all = [&](const torch::Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == numbers; };
  bool fits = state.old_dirs().size() == state.old_stps().size() && state.old_dirs().size() == state.ro().size();
  for (const torch::Tensor& tensor : state.old_dirs()) fits = fits && has_all(tensor);
  for (const torch::Tensor& tensor : state.old_stps()) fits = fits && has_all(tensor);
  fits = fits && std::ssize(state.old_dirs()) <= options.history_size();
  for (const torch::Tensor& tensor : state.ro()) fits = fits && tensor.numel() == 1;
  fits = fits && (!state.H_diag().defined() || state.H_diag().numel() == 1);
  for (const torch::Tensor& tensor : {state.d(), state.prev_flat_grad()})
    fits = fits && (!tensor.defined() || has_all(tensor));
  if (state.n_iter() > 0)
    fits = fits && state.d().defined() && state.H_diag().defined() && state.prev_flat_grad().defined();
  if (state.al()) fits = fits && std::ssize(*state.al()) >= options.history_size();
  if (!fits)
    faults.add("LBFGS: the state in the file is not one of " + std::to_string(numbers) +
               " numbers, which the optimizer's parameters have, with at most " +
               std::to_string(options.history_size()) + " directions, its history_size");
}

}  // namespace

Value lbfgs_state(const torch::optim::LBFGS& optimizer, const std::function<Dict(std::size_t group)>& more) {
  const torch::optim::OptimizerParamGroup& group = optimizer.param_groups().front();
  DictBuilder options;
  visit_lbfgs_options(static_cast<const Options&>(group.options()),
                      [&](const char* name, const auto& value) { options.add(name, lbfgs_value(value)); });
  for (const auto& [name, value] : more ? more(0) : Dict()) options.add(name, to_pt(value));
  std::vector<Value> ids;
  for (std::size_t i = 0; i < group.params().size(); ++i) ids.emplace_back(static_cast<std::int64_t>(i));
  options.add("params", make_container(Container::Kind::list, std::move(ids)));
  DictBuilder states;
  const auto found = optimizer.state().find(group.params().front().unsafeGetTensorImpl());
  if (found != optimizer.state().end() && static_cast<const State&>(*found->second).n_iter() > 0) {
    DictBuilder state;
    visit_lbfgs_state(static_cast<const State&>(*found->second), [&](const char* name, const auto& value) {
      if (Value converted = lbfgs_value(value); !converted.is_none()) state.add(name, std::move(converted));
    });
    states.add(std::int64_t{0}, state.take());
  }
  DictBuilder state_dict;
  state_dict.add("state", states.take());
  state_dict.add("param_groups", make_container(Container::Kind::list, {options.take()}));
  return state_dict.take();
}

OptimizerUpdate prepare_lbfgs_update(const torch::optim::LBFGS& optimizer, const Value& state_dict, Faults& faults) {
  const torch::optim::OptimizerParamGroup& group = optimizer.param_groups().front();
  const torch::Tensor& first = group.params().front();
  const Value* const states = state_dict.find("state");
  const Value* const groups = state_dict.find("param_groups");
  OptimizerUpdate update;
  if (states == nullptr || states->dict() == nullptr || groups == nullptr || groups->list() == nullptr ||
      groups->list()->items.size() != 1) {
    faults.add("the optimizer's state has no dictionary \"state\" and list \"param_groups\" of one group");
    return update;
  }
  const LbfgsReader reader{first};
  auto options = std::make_unique<Options>(static_cast<const Options&>(group.options()));
  const Value& saved_options = groups->list()->items.front();
  visit_lbfgs_options(*options, [&](const char* name, auto& option) {
    const Value* const value = saved_options.find(name);
    if (value == nullptr) {
      faults.add(std::string("LBFGS: the file has no option \"") + name + "\"; was it saved by another optimizer?");
    } else if (value->is_none()) {
      if constexpr (requires { option.reset(); }) option.reset();
    } else if (!reader.read(*value, option)) {
      faults.add(std::string("LBFGS: the option \"") + name + "\" is " + value->kind_name());
    }
  });
  if (options->history_size() < 1)
    faults.add("LBFGS: the option \"history_size\" is " + std::to_string(options->history_size()) +
               "; it must be at least 1");
  auto state = std::make_unique<State>();
  if (!states->dict()->items.empty()) {
    const Value& saved = states->dict()->items.at(1);
    visit_lbfgs_state(*state, [&](const char* name, auto& field) {
      const Value* const value = saved.find(name);
      if (value != nullptr && !value->is_none() && !reader.read(*value, field))
        faults.add(std::string("LBFGS: \"") + name + "\" is " + value->kind_name());
    });
    std::int64_t numbers = 0;
    for (const torch::Tensor& parameter : group.params()) numbers += parameter.numel();
    check(*state, *options, numbers, faults);
  }
  update.group_options.push_back(std::move(options));
  update.parameter_states.emplace_back(first, std::move(state));
  return update;
}

}  // namespace cadre::pt
