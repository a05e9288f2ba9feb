#include "torch/pickle_value.h"

#include <algorithm>
#include <array>

namespace cadre::pt {
namespace {

struct StorageKind {
  const char* name;
  at::ScalarType type;
};
constexpr std::array<StorageKind, 12> storage_kinds = {{
    {"torch.FloatStorage", at::kFloat},
    {"torch.DoubleStorage", at::kDouble},
    {"torch.HalfStorage", at::kHalf},
    {"torch.BFloat16Storage", at::kBFloat16},
    {"torch.LongStorage", at::kLong},
    {"torch.IntStorage", at::kInt},
    {"torch.ShortStorage", at::kShort},
    {"torch.CharStorage", at::kChar},
    {"torch.ByteStorage", at::kByte},
    {"torch.BoolStorage", at::kBool},
    {"torch.ComplexFloatStorage", at::kComplexFloat},
    {"torch.ComplexDoubleStorage", at::kComplexDouble},
}};

}  // namespace

Container* Value::any_container() const {
  const auto* found = get_if<std::shared_ptr<Container>>();
  return found == nullptr ? nullptr : found->get();
}

Container* Value::container(Container::Kind kind) const {
  Container* const found = any_container();
  return found != nullptr && found->kind == kind ? found : nullptr;
}

const Value* Value::find(std::string_view key) const {
  const Container* const entries = dict();
  if (entries == nullptr) return nullptr;
  for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
    const auto* name = entries->items[i].get_if<std::string>();
    if (name != nullptr && *name == key) return &entries->items[i + 1];
  }
  return nullptr;
}

std::uint64_t Value::weight() const {
  if (const std::string* text = get_if<std::string>()) return 1 + text->size();
  const Container* const container = any_container();
  return container == nullptr ? 1 : container->weight;
}

const char* Value::kind_name() const {
  if (const Container* found = any_container()) {
    constexpr std::array names = {"a list", "a tuple", "a dictionary"};
    return names[static_cast<std::size_t>(found->kind)];
  }
  constexpr std::array names = {"None", "a bool",   "an integer",      "a number",
                                "text", "a tensor", "a Python object", "a storage"};
  return names[data_.index()];
}

Value make_container(Container::Kind kind, std::vector<Value> items) {
  auto made = std::make_shared<Container>();
  made->kind = kind;
  made->items = std::move(items);
  for (const Value& item : made->items) {
    if (Container* inner = item.any_container()) {
      inner->sealed = true;
      made->depth = std::max(made->depth, inner->depth + 1);
    }
  }
  return made;
}

void DictBuilder::add(Value key, Value value) {
  Container& dict = *dict_.dict();
  dict.items.push_back(std::move(key));
  dict.items.push_back(std::move(value));
}

const char* storage_name(at::ScalarType type) {
  const auto* found = std::ranges::find(storage_kinds, type, &StorageKind::type);
  return found == storage_kinds.end() ? nullptr : found->name;
}

std::optional<at::ScalarType> storage_type(std::string_view name) {
  const auto* found =
      std::ranges::find(storage_kinds, name, [](const StorageKind& kind) { return std::string_view(kind.name); });
  return found == storage_kinds.end() ? std::nullopt : std::optional(found->type);
}

}  // namespace cadre::pt
