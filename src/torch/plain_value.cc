#include "torch/plain_value.h"

#include <map>
#include <string>
#include <utility>

#include "base/overload.h"
#include "cadre/error.h"

namespace cadre::pt {
namespace {

constexpr const char* kMilestones = "milestones";
constexpr const char* kParts = "_schedulers";
constexpr std::int64_t kMostMilestones = 1'000'000;

Value to_counter(const List& epochs) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const cadre::Value& epoch : epochs) ++counts[epoch.get<std::int64_t>()];
  DictBuilder counter;
  for (const auto& [epoch, count] : counts) counter.add(epoch, count);
  return counter.take();
}

List to_epochs(const Container& counter) {
  List epochs;
  for (std::size_t i = 0; i + 1 < counter.items.size(); i += 2) {
    const auto* const epoch = counter.items[i].get_if<std::int64_t>();
    const auto* const count = counter.items[i + 1].get_if<std::int64_t>();
    if (epoch == nullptr || count == nullptr || *count < 0 || *count > kMostMilestones - std::ssize(epochs))
      throw InvalidArgument("its \"milestones\" must be counts by epoch, at most a million in all");
    epochs.insert(epochs.end(), static_cast<std::size_t>(*count), *epoch);
  }
  return epochs;
}

}  // namespace

Value to_pt(const cadre::Value& value) {
  return std::visit(
      base::Overload{[](std::monostate) { return Value(); }, [](bool one) -> Value { return one; },
                     [](std::int64_t one) -> Value { return one; }, [](double one) -> Value { return one; },
                     [](const std::string& one) -> Value { return one; },
                     [](const std::shared_ptr<const List>& items) {
                       std::vector<Value> converted;
                       for (const cadre::Value& item : *items) converted.push_back(to_pt(item));
                       return make_container(Container::Kind::list, std::move(converted));
                     },
                     [](const std::shared_ptr<const Dict>& entries) {
                       DictBuilder converted;
                       for (const auto& [key, entry] : *entries) converted.add(key, to_pt(entry));
                       return converted.take();
                     },
                     [](const Reference&) -> Value {
                       throw InvalidArgument("a reference cannot be saved in a file; save what it refers to");
                     }},
      value.data());
}

cadre::Value to_plain(const Value& value) {
  if (value.is_none()) return {};
  if (const auto* one = value.get_if<bool>()) return *one;
  if (const auto* one = value.get_if<std::int64_t>()) return *one;
  if (const auto* one = value.get_if<double>()) return *one;
  if (const auto* one = value.get_if<std::string>()) return *one;
  if (const Container* const entries = value.dict()) {
    Dict converted;
    for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
      const auto* const key = entries->items[i].get_if<std::string>();
      if (key == nullptr)
        throw InvalidArgument(c10::str("a key of a dictionary is ", entries->items[i].kind_name(), ", expected text"));
      converted.emplace_back(*key, to_plain(entries->items[i + 1]));
    }
    return converted;
  }
  const Container* const items = value.list() != nullptr ? value.list() : value.tuple();
  if (items == nullptr)
    throw InvalidArgument(c10::str("it is ", value.kind_name(), ", expected numbers, text, lists or dictionaries"));
  List converted;
  for (const Value& item : items->items) converted.push_back(to_plain(item));
  return converted;
}

Value to_pt_state(const Dict& state) {
  DictBuilder converted;
  for (const auto& [name, value] : state) {
    if (name == kMilestones) {
      converted.add(name, to_counter(value.items()));
    } else if (name == kParts) {
      std::vector<Value> parts;
      for (const cadre::Value& part : value.items()) parts.push_back(to_pt_state(part.dict()));
      converted.add(name, make_container(Container::Kind::list, std::move(parts)));
    } else {
      converted.add(name, to_pt(value));
    }
  }
  return converted.take();
}

Dict to_plain_state(const Value& state) {
  const Container* const entries = state.dict();
  if (entries == nullptr) throw InvalidArgument(c10::str("it is ", state.kind_name(), ", expected a dictionary"));
  Dict converted;
  for (std::size_t i = 0; i + 1 < entries->items.size(); i += 2) {
    const auto* const name = entries->items[i].get_if<std::string>();
    if (name == nullptr)
      throw InvalidArgument(c10::str("one of its keys is ", entries->items[i].kind_name(), ", expected text"));
    const Value& value = entries->items[i + 1];
    if (*name == kMilestones && value.dict() != nullptr) {
      converted.emplace_back(*name, to_epochs(*value.dict()));
    } else if (*name == kParts && value.list() != nullptr) {
      List parts;
      for (const Value& part : value.list()->items) parts.emplace_back(to_plain_state(part));
      converted.emplace_back(*name, std::move(parts));
    } else {
      converted.emplace_back(*name, to_plain(value));
    }
  }
  return converted;
}

}  // namespace cadre::pt
