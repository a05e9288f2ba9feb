/// \file
/// Activations that are computed again in the backward pass instead of being kept for it: less memory, for about a
/// third more time.
///
///     torch::Tensor forward(torch::Tensor x) {
///       for (auto& block : *blocks)
///         x = train::checkpoint_activations([&](const torch::Tensor& x) { return block->as<Block>()->forward(x); },
///         x);
///       return x;
///     }
///
/// Source: "Training Deep Nets with Sublinear Memory Cost", Chen et al., 2016; as torch.utils.checkpoint.checkpoint.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace cadre::train {

namespace detail {

using TensorFunction = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs)>;
std::vector<torch::Tensor> checkpoint_activations(TensorFunction function, const std::vector<torch::Tensor>& inputs);

template <class Function, std::size_t... indices>
auto call_with(Function& function, const std::vector<torch::Tensor>& inputs, std::index_sequence<indices...>) {
  return function(inputs[indices]...);
}

}  // namespace detail

/// Returns function(inputs...), a tensor or a vector of tensors, and keeps for the backward pass only the inputs. The
/// function is called again there, with the same random numbers of libtorch, mixed precision and modes, and must do
/// the same then; it is copied, and what it refers to must live until the backward pass. Parameters that it uses get
/// their gradients as without this. Without gradients it is called once. May be nested. Not for torch::autograd::grad
/// of these parameters.
template <class Function, std::same_as<torch::Tensor>... Inputs>
  requires std::invocable<Function&, const Inputs&...>
auto checkpoint_activations(Function function, const Inputs&... inputs) {
  using Result = std::remove_cvref_t<std::invoke_result_t<Function&, const Inputs&...>>;
  constexpr bool is_one = std::same_as<Result, torch::Tensor>;
  static_assert(is_one || std::same_as<Result, std::vector<torch::Tensor>>,
                "the function returns a torch::Tensor or a std::vector of them");
  const auto of_vector = [function](const std::vector<torch::Tensor>& all) mutable -> std::vector<torch::Tensor> {
    if constexpr (is_one)
      return {detail::call_with(function, all, std::index_sequence_for<Inputs...>())};
    else
      return detail::call_with(function, all, std::index_sequence_for<Inputs...>());
  };
  std::vector<torch::Tensor> outputs = detail::checkpoint_activations(of_vector, {inputs...});
  if constexpr (is_one)
    return outputs.front();
  else
    return outputs;
}

}  // namespace cadre::train
