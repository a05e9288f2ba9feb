// The contents of a file of torch.save as values: Python's plain types and tensors.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cadre::pt {

// A Python object, named by module and name, such as "torch.FloatStorage".
struct Global {
  std::string name;
};

// A tensor's memory and the type of its elements.
struct TypedStorage {
  c10::Storage storage;
  at::ScalarType type = at::kFloat;
};

class Value;

// The contents of a list, a tuple or a dictionary; in a dictionary keys and values alternate.
struct Container {
  enum class Kind { list, tuple, dict };
  Kind kind = Kind::list;
  std::vector<Value> items;
  int depth = 1;  // levels of containers, including this one
  // Number of values and bytes of text visited by a walk through it; shared values count each time they occur.
  std::uint64_t weight = 1;
  bool sealed = false;  // true once it is inside another container: it never changes again, so there are no cycles
};

// A Python value. Copies are cheap: they share text, containers and tensors.
class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Data = std::variant<std::monostate, bool, std::int64_t, double, Text, torch::Tensor, Global, TypedStorage,
                            std::shared_ptr<Container>>;

  Value() = default;  // None
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Value> && std::constructible_from<Data, T &&>)
  Value(T&& data) : data_(std::forward<T>(data)) {}

  template <class T>
  const T* get_if() const {
    if constexpr (std::same_as<T, std::string>) {
      const Text* const text = std::get_if<Text>(&data_);
      return text == nullptr ? nullptr : text->get();
    } else {
      return std::get_if<T>(&data_);
    }
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }

  // Returns the container; nullptr if the value is something else.
  Container* container(Container::Kind kind) const;
  Container* dict() const { return container(Container::Kind::dict); }
  Container* list() const { return container(Container::Kind::list); }
  Container* tuple() const { return container(Container::Kind::tuple); }
  Container* any_container() const;

  // Returns the value at a dictionary's key; nullptr if there is none or this is not a dictionary.
  const Value* find(std::string_view key) const;

  const Data& data() const { return data_; }
  // Returns the weight as defined for Container::weight.
  std::uint64_t weight() const;
  // Returns "a dictionary", "an integer" and so on, for messages.
  const char* kind_name() const;

 private:
  Data data_;
};

Value make_container(Container::Kind kind, std::vector<Value> items = {});

// Builds a dictionary in the order of the calls.
class DictBuilder {
 public:
  DictBuilder() : dict_(make_container(Container::Kind::dict)) {}
  void add(Value key, Value value);
  Value take() { return std::move(dict_); }

 private:
  Value dict_;
};

// Convert an element type to its name in files, such as "torch.FloatStorage", and back. Return nullptr and nullopt for
// types that such files do not support.
const char* storage_name(at::ScalarType type);
std::optional<at::ScalarType> storage_type(std::string_view name);

}  // namespace cadre::pt
