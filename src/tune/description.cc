#include "tune/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/overload.h"
#include "tune/option_fields.h"

namespace cadre::tune {
namespace {

template <class T>
using Named = std::vector<std::pair<std::string, T>>;

// A type that Value can hold directly.
template <class T>
concept Plain = std::constructible_from<Value, const T&>;

constexpr std::array<std::string_view, 3> kBoundsNames{"clip", "reflect", "unbounded"};
constexpr std::array<std::string_view, 4> kStrategyNames{"PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"};

// ---- Writing

// An archive that writes a dictionary.
class Writer {
 public:
  template <class T>
  void operator()(const char* key, const T& field) {
    entries_.emplace_back(key, to_value(field));
  }
  void added(const char* key, const auto& field) { (*this)(key, field); }

  template <class T>
    requires(!Plain<T>)
  static Dict to_dict(const T& object) {
    Writer writer;
    fields(writer, object);
    return std::move(writer.entries_);
  }

 private:
  static Value to_value(const Plain auto& plain) { return plain; }
  static Value to_value(std::uint64_t number) { return std::to_string(number); }  // a Value's integers have a sign
  static Value to_value(Seconds time) { return time.count(); }
  static Value to_value(Mode mode) { return mode == Mode::max ? "max" : "min"; }
  static Value to_value(PlacementStrategy strategy) { return kStrategyNames[static_cast<std::size_t>(strategy)]; }
  static Value to_value(Bounds bounds) { return kBoundsNames[static_cast<std::size_t>(bounds)]; }
  static Value to_value(const std::pair<double, double>& pair) { return list(pair.first, pair.second); }

  template <class T>
  static Value to_value(const std::optional<T>& optional) {
    return optional ? to_value(*optional) : Value();
  }
  template <class T>
  static Value to_value(const Named<T>& named) {
    Dict entries;
    for (const auto& [name, item] : named) entries.emplace_back(name, to_value(item));
    return entries;
  }
  template <class T>
  static Value to_value(const std::map<std::string, T>& named) {
    return to_value(Named<T>(named.begin(), named.end()));
  }
  template <class... T>
  static Value to_value(const std::variant<T...>& variant) {
    return std::visit(
        []<class Type>(const Type& object) -> Value {
          Writer writer;
          writer("type", std::string(type_name<Type>));
          fields(writer, object);
          return std::move(writer.entries_);
        },
        variant);
  }
  static Value to_value(const SpaceEntry& entry) {
    using Items = std::shared_ptr<const Entries>;
    using Nested = std::shared_ptr<const Space>;
    return std::visit(base::Overload{[](const Domain& domain) { return to_value(domain); },
                                     [](const Value& constant) { return to_value(StoredEntry(Constant{constant})); },
                                     [](const Items& items) { return to_value(StoredEntry(ListSpace{items})); },
                                     [](const Nested& nested) { return to_value(StoredEntry(NestedSpace{*nested})); },
                                     [](const auto& other) { return to_value(StoredEntry(other)); }},
                      entry.data());
  }
  static Value to_value(const std::shared_ptr<const Entries>& entries) {
    List items;
    for (const SpaceEntry& entry : *entries) items.push_back(to_value(entry));
    return items;
  }
  static Value to_value(const Objective& metric) { return metric.name; }  // the direction is stored beside it
  // Writes a threshold with mode max as a plain number.
  static Value to_value(const Threshold& threshold) {
    if (threshold.mode == Mode::min) return Dict{{"at_most", threshold.value}};
    return threshold.value;
  }
  static Value to_value(const std::vector<Stopper>& stoppers) { return to_list(stoppers); }
  static Value to_value(const std::vector<Resources>& bundles) { return to_list(bundles); }
  static Value to_value(const Config& config) { return config.dict(); }
  static Value to_value(const std::filesystem::path& path) { return path.string(); }
  static Value to_value(const std::vector<Config>& configs) { return to_list(configs); }
  static Value to_value(const std::vector<PolicySchedule::Change>& changes) { return to_list(changes); }
  static Value to_list(const auto& objects) {
    List items;
    for (const auto& object : objects) items.push_back(to_value(object));
    return items;
  }
  static Value to_value(const Mutation& mutation) {
    using Nested = std::shared_ptr<const Mutations>;
    return std::visit(
        base::Overload{[](const Domain& domain) { return to_value(domain); },
                       [](const List& values) { return to_value(StoredMutation(Values{values})); },
                       [](const SampleFrom& function) { return to_value(StoredMutation(function)); },
                       [](const Nested& nested) { return to_value(StoredMutation(NestedMutations{*nested})); }},
        mutation.data());
  }
  template <class T>
    requires(!Plain<T>)
  static Value to_value(const T& object) {
    return to_dict(object);
  }

  Dict entries_;
};

// ---- Reading

// A value of the stored description, with its path.
struct Stored {
  const Value& value;
  std::string path;
  const std::string& source;

  [[noreturn]] void refuse(const std::string& why) const {
    throw StorageError(fmt::format("{}: {}{}. The store is damaged, or of another version of Cadre", source,
                                   path.empty() ? "" : path + ": ", why));
  }
  template <class T>
  T get() const {
    try {
      return value.get<T>();
    } catch (const InvalidArgument& error) {
      refuse(error.what());
    }
  }
  Stored at(const std::string& key, const Value& entry) const {
    return {entry, path.empty() ? key : path + "/" + key, source};
  }
};

// An archive that reads a dictionary.
class Reader {
 public:
  explicit Reader(const Stored& stored) : stored_(stored), entries_(stored.get<Dict>()) {}

  template <class T>
  void operator()(const char* key, T& field) {
    const Value* entry = find_entry(entries_, key);
    if (entry == nullptr) stored_.at(key, stored_.value).refuse("it is missing");
    read(field, stored_.at(key, *entry));
    read_.insert(entry);
  }
  void added(const char* key, auto& field) {
    if (find_entry(entries_, key) != nullptr) (*this)(key, field);
  }

  // Throws StorageError if a field was not read. Call it after all fields.
  void refuse_others() const {
    for (const Dict::value_type& entry : entries_) {
      if (!read_.contains(&entry.second)) stored_.at(entry.first, entry.second).refuse("no such option is known");
    }
  }

  template <class T>
    requires(!Plain<T>)
  static void read(T& object, const Stored& stored) {
    Reader reader(stored);
    fields(reader, object);
    reader.refuse_others();
  }

 private:
  template <Plain T>
  static void read(T& plain, const Stored& stored) {
    plain = stored.get<T>();
  }
  static void read(std::uint64_t& number, const Stored& stored) {
    const auto text = stored.get<std::string>();
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) stored.refuse("\"" + text + "\" is no number from 0 to 2^64 - 1");
  }
  static void read(Seconds& time, const Stored& stored) { time = Seconds(stored.get<double>()); }
  static void read(Mode& mode, const Stored& stored) {
    const auto text = stored.get<std::string>();
    if (text != "max" && text != "min") stored.refuse("\"" + text + "\" is neither \"max\" nor \"min\"");
    mode = text == "max" ? Mode::max : Mode::min;
  }
  static void read(Bounds& bounds, const Stored& stored) {
    const auto name = std::ranges::find(kBoundsNames, stored.get<std::string>());
    if (name == kBoundsNames.end()) stored.refuse(to_json(stored.value) + " is neither clip, reflect nor unbounded");
    bounds = static_cast<Bounds>(name - kBoundsNames.begin());
  }
  static void read(std::pair<double, double>& pair, const Stored& stored) {
    const auto numbers = stored.get<std::vector<double>>();
    if (numbers.size() != 2) stored.refuse(to_json(stored.value) + " is not two numbers");
    pair = {numbers[0], numbers[1]};
  }

  template <class T>
  static void read(std::optional<T>& optional, const Stored& stored) {
    if (stored.value.is_null()) return optional.reset();
    read(optional.emplace(), stored);
  }
  template <class T>
  static void read(Named<T>& named, const Stored& stored) {
    for (const auto& [name, item] : stored.get<Dict>())
      read(named.emplace_back(name, T{}).second, stored.at(name, item));
  }
  template <class T>
  static void read(std::map<std::string, T>& map, const Stored& stored) {
    Named<T> named;
    read(named, stored);
    map = {named.begin(), named.end()};
  }
  template <class... T>
  static void read(std::variant<T...>& variant, const Stored& stored) {
    Reader reader(stored);
    std::string type;
    reader("type", type);
    const bool known = ((type == type_name<T> && (fields(reader, variant.template emplace<T>()), true)) || ...);
    if (!known) stored.refuse("the type \"" + type + "\" is unknown");
    reader.refuse_others();
  }
  static void read(Space& space, const Stored& stored) {
    Named<StoredEntry> entries;
    read(entries, stored);
    for (const auto& [key, entry] : entries) space.emplace_back(key, to_entry(entry));
  }
  static void read(std::shared_ptr<const Entries>& items, const Stored& stored) {
    Entries entries;
    for (const Value& item : stored.get<List>()) {
      StoredEntry entry;
      read(entry, stored.at(std::to_string(entries.size()), item));
      entries.push_back(to_entry(entry));
    }
    items = std::make_shared<const Entries>(std::move(entries));
  }
  static SpaceEntry to_entry(const StoredEntry& entry) {
    return std::visit(base::Overload{[](const GridSearch& grid) { return SpaceEntry(grid); },
                                     [](const SampleFrom& function) { return SpaceEntry(function); },
                                     [](const Constant& constant) { return SpaceEntry(constant.value); },
                                     [](const ListSpace& list) { return SpaceEntry(Entries(*list.items)); },
                                     [](const NestedSpace& nested) { return SpaceEntry(nested.entries); },
                                     [](const auto& domain) { return SpaceEntry(Domain(domain)); }},
                      entry);
  }
  static void read(Objective& metric, const Stored& stored) { metric.name = stored.get<std::string>(); }
  static void read(Threshold& threshold, const Stored& stored) {
    if (stored.value.is_number()) return void(threshold = at_least(stored.get<double>()));
    Reader reader(stored);
    threshold = at_most(0);
    reader("at_most", threshold.value);
    reader.refuse_others();
  }
  static void read(std::vector<Stopper>& stoppers, const Stored& stored) { read_list(stoppers, stored); }
  static void read(std::vector<Resources>& bundles, const Stored& stored) { read_list(bundles, stored); }
  static void read(PlacementStrategy& strategy, const Stored& stored) {
    const auto name = std::ranges::find(kStrategyNames, stored.get<std::string>());
    if (name == kStrategyNames.end()) stored.refuse(to_json(stored.value) + " is no strategy of placement");
    strategy = static_cast<PlacementStrategy>(name - kStrategyNames.begin());
  }
  static void read(Config& config, const Stored& stored) { config = Config(stored.get<Dict>()); }
  static void read(std::filesystem::path& path, const Stored& stored) { path = stored.get<std::string>(); }
  static void read(std::vector<Config>& configs, const Stored& stored) { read_list(configs, stored); }
  static void read(std::vector<PolicySchedule::Change>& changes, const Stored& stored) { read_list(changes, stored); }
  static void read_list(auto& objects, const Stored& stored) {
    for (const Value& item : stored.get<List>()) {
      const std::string place = std::to_string(objects.size());
      read(objects.emplace_back(), stored.at(place, item));
    }
  }
  static void read(Mutations& mutations, const Stored& stored) {
    Named<StoredMutation> entries;
    read(entries, stored);
    for (const auto& [key, entry] : entries) {
      mutations.emplace_back(
          key, std::visit(base::Overload{[](const Values& values) { return Mutation(values.values); },
                                         [](const NestedMutations& nested) { return Mutation(nested.entries); },
                                         [](const SampleFrom& function) { return Mutation(function); },
                                         [](const auto& domain) { return Mutation(Domain(domain)); }},
                          entry));
    }
  }

  const Stored& stored_;
  Dict entries_;
  std::set<const Value*> read_;
};

}  // namespace

Dict describe(const Trainable& trainable, const TunerOptions& options) {
  return Writer::to_dict(Description{trainable, options});
}

Description parse_description(const Value& stored, const std::string& source) {
  if (stored.is_dict() && Config(stored).contains("loop"))
    throw StorageError(source + " are those of a training run, which train::Trainer::restore continues");
  Description description;
  Reader::read(description, {stored, "", source});
  return description;
}

}  // namespace cadre::tune
