/// \file
/// Visitors of the tensors in a value. Not part of the public interface.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cadre::train::detail {

template <class T>
inline constexpr bool is_example = false;
template <class Data, class Target>
inline constexpr bool is_example<torch::data::Example<Data, Target>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };

template <class T>
concept ItemRange =
    std::ranges::range<T> && std::is_lvalue_reference_v<std::ranges::range_reference_t<T>> &&
    !std::convertible_to<T, std::string> && !std::same_as<std::ranges::range_value_t<T>, std::remove_const_t<T>>;

// Calls visit(torch::Tensor&) for the tensors in a value: a tensor, an example, or tuples, pairs, arrays, optionals and
// ranges of these.
template <class T, class Visit>
void visit_tensors(T& value, const Visit& visit) {
  if constexpr (std::same_as<T, torch::Tensor>) {
    visit(value);
  } else if constexpr (is_example<T>) {
    visit_tensors(value.data, visit);
    if constexpr (requires { value.target; }) visit_tensors(value.target, visit);
  } else if constexpr (is_optional<T>) {
    if (value) visit_tensors(*value, visit);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](auto&... items) { (visit_tensors(items, visit), ...); }, value);
  } else if constexpr (ItemRange<T>) {
    for (auto& item : value) visit_tensors(item, visit);
  }
}

// Returns the tensors in a value that are defined.
template <class T>
std::vector<torch::Tensor*> tensors_of(T& value) {
  std::vector<torch::Tensor*> tensors;
  visit_tensors(value, [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(&tensor);
  });
  return tensors;
}

// True if visit_tensors finds all tensors in values of this type: it cannot look into unknown classes.
template <class T>
inline constexpr bool tensors_are_visible = [] {
  if constexpr (std::same_as<T, torch::Tensor> || is_example<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                std::convertible_to<T, std::string>) {
    return true;
  } else if constexpr (is_optional<T>) {
    return tensors_are_visible<typename T::value_type>;
  } else if constexpr (TupleLike<T>) {
    return []<std::size_t... index>(std::index_sequence<index...>) {
      return (tensors_are_visible<std::remove_const_t<std::tuple_element_t<index, T>>> && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (ItemRange<T>) {
    return tensors_are_visible<std::ranges::range_value_t<T>>;
  } else {
    return false;
  }
}();

}  // namespace cadre::train::detail
