// The options and states of the optimizers, field by field; no other file lists them.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <string>
#include <type_traits>

#include "cadre/error.h"

namespace cadre::pt {

// The range that the Python classes accept for an option.
enum class Range { any, not_negative, zero_to_one_exclusive };

// The meaning of a missing value in a state, given the options of its group.
enum class IfMissing { fault, zeros, nothing };

template <class T, class... Kinds>
concept OneOf = (std::same_as<std::remove_const_t<T>, Kinds> || ...);

// Calls visit(name, reference, range) for each option, in the order of the Python class.
template <OneOf<torch::optim::SGDOptions> Options, class Visit>
void visit_options(Options& options, Visit visit) {
  visit("lr", options.lr(), Range::not_negative);
  visit("momentum", options.momentum(), Range::not_negative);
  visit("dampening", options.dampening(), Range::any);
  visit("weight_decay", options.weight_decay(), Range::not_negative);
  visit("nesterov", options.nesterov(), Range::any);
}
template <OneOf<torch::optim::AdamOptions, torch::optim::AdamWOptions> Options, class Visit>
void visit_options(Options& options, Visit visit) {
  visit("lr", options.lr(), Range::not_negative);
  visit("betas", options.betas(), Range::zero_to_one_exclusive);
  visit("eps", options.eps(), Range::not_negative);
  visit("weight_decay", options.weight_decay(), Range::not_negative);
  visit("amsgrad", options.amsgrad(), Range::any);
}
template <OneOf<torch::optim::RMSpropOptions> Options, class Visit>
void visit_options(Options& options, Visit visit) {
  visit("lr", options.lr(), Range::not_negative);
  visit("momentum", options.momentum(), Range::not_negative);
  visit("alpha", options.alpha(), Range::not_negative);
  visit("eps", options.eps(), Range::not_negative);
  visit("centered", options.centered(), Range::any);
  visit("weight_decay", options.weight_decay(), Range::not_negative);
}
template <OneOf<torch::optim::AdagradOptions> Options, class Visit>
void visit_options(Options& options, Visit visit) {
  visit("lr", options.lr(), Range::not_negative);
  visit("lr_decay", options.lr_decay(), Range::not_negative);
  visit("eps", options.eps(), Range::not_negative);
  visit("weight_decay", options.weight_decay(), Range::not_negative);
  visit("initial_accumulator_value", options.initial_accumulator_value(), Range::not_negative);
}

// Calls visit(name, reference, if_missing) for each value that an optimizer keeps for a parameter.
template <OneOf<torch::optim::SGDParamState> State, class Visit>
void visit_state(State& state, const torch::optim::SGDOptions&, Visit visit) {
  visit("momentum_buffer", state.momentum_buffer(), IfMissing::nothing);
}
template <OneOf<torch::optim::AdamParamState, torch::optim::AdamWParamState> State, class Options, class Visit>
void visit_state(State& state, const Options& options, Visit visit) {
  visit("step", state.step(), IfMissing::fault);
  visit("exp_avg", state.exp_avg(), IfMissing::fault);
  visit("exp_avg_sq", state.exp_avg_sq(), IfMissing::fault);
  visit("max_exp_avg_sq", state.max_exp_avg_sq(), options.amsgrad() ? IfMissing::zeros : IfMissing::nothing);
}
template <OneOf<torch::optim::RMSpropParamState> State, class Visit>
void visit_state(State& state, const torch::optim::RMSpropOptions& options, Visit visit) {
  visit("step", state.step(), IfMissing::fault);
  visit("square_avg", state.square_avg(), IfMissing::fault);
  visit("momentum_buffer", state.momentum_buffer(), options.momentum() > 0 ? IfMissing::zeros : IfMissing::nothing);
  visit("grad_avg", state.grad_avg(), options.centered() ? IfMissing::zeros : IfMissing::nothing);
}
template <OneOf<torch::optim::AdagradParamState> State, class Visit>
void visit_state(State& state, const torch::optim::AdagradOptions&, Visit visit) {
  visit("step", state.step(), IfMissing::fault);
  visit("sum", state.sum(), IfMissing::fault);
}

struct SGDKind {
  using Optimizer = torch::optim::SGD;
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  static constexpr const char* name = "SGD";
};
struct AdamKind {
  using Optimizer = torch::optim::Adam;
  using Options = torch::optim::AdamOptions;
  using State = torch::optim::AdamParamState;
  static constexpr const char* name = "Adam";
};
struct AdamWKind {
  using Optimizer = torch::optim::AdamW;
  using Options = torch::optim::AdamWOptions;
  using State = torch::optim::AdamWParamState;
  static constexpr const char* name = "AdamW";
};
struct RMSpropKind {
  using Optimizer = torch::optim::RMSprop;
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;
  static constexpr const char* name = "RMSprop";
};
struct AdagradKind {
  using Optimizer = torch::optim::Adagrad;
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  static constexpr const char* name = "Adagrad";
};

// Calls function(kind) with the kind of the optimizer. Throws InvalidArgument for an unsupported kind.
template <class Function>
auto with_kind(const torch::optim::Optimizer& optimizer, Function function) {
  const auto is = [&optimizer](auto kind) {
    return dynamic_cast<const typename decltype(kind)::Optimizer*>(&optimizer) != nullptr;
  };
  if (is(SGDKind{})) return function(SGDKind{});
  if (is(AdamKind{})) return function(AdamKind{});
  if (is(AdamWKind{})) return function(AdamWKind{});
  if (is(RMSpropKind{})) return function(RMSpropKind{});
  if (is(AdagradKind{})) return function(AdagradKind{});
  throw InvalidArgument("this kind of optimizer is not supported: use one of libtorch's, or save " +
                        std::string("and load it by yourself with torch::save and torch::load"));
}

// Adds zeros for values that the options of its group require and the state lacks (an option was switched on).
template <class Kind>
void complete_state(typename Kind::State& state, const typename Kind::Options& options,
                    const torch::Tensor& parameter) {
  visit_state(state, options, [&](const char*, auto& field, IfMissing if_missing) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, torch::Tensor>) {
      if (!field.defined() && if_missing == IfMissing::zeros) field = torch::zeros_like(parameter.detach());
    }
  });
}

}  // namespace cadre::pt
