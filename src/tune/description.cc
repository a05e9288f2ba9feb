#include "tune/description.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/overload.h"
#include "cadre/stored.h"
#include "store/run_directory.h"
#include "tune/held_options.h"

// Members that are not stored: methods and callbacks belong to the program; names and places change when an experiment
// is moved.
template <>
inline constexpr auto cadre::kNotStored<cadre::tune::Trainable> = member_list("methods");
template <>
inline constexpr auto cadre::kNotStored<cadre::tune::RunConfig> =
    member_list("name", "if_exists", "storage_path", "publish_config", "callbacks");

namespace cadre::tune {

// ---- Search spaces and mutations

namespace {

struct Constant {
  Value value = {};
};
struct ListSpace {
  std::shared_ptr<const Entries> items = {};
};
struct NestedSpace {
  Space entries = {};
};
struct Values {
  List values = {};
};
struct NestedMutations {
  Mutations entries = {};
};

}  // namespace
}  // namespace cadre::tune

// The names of the functions that make them; Ray Tune's for a function of the program.
namespace cadre {
template <>
inline constexpr std::string_view kStoredName<tune::Uniform> = "uniform";
template <>
inline constexpr std::string_view kStoredName<tune::LogUniform> = "loguniform";
template <>
inline constexpr std::string_view kStoredName<tune::Normal> = "randn";
template <>
inline constexpr std::string_view kStoredName<tune::RandInt> = "randint";
template <>
inline constexpr std::string_view kStoredName<tune::LogRandInt> = "lograndint";
template <>
inline constexpr std::string_view kStoredName<tune::Choice> = "choice";
template <>
inline constexpr std::string_view kStoredName<tune::Ordinal> = "ordinal";
template <>
inline constexpr std::string_view kStoredName<tune::GridSearch> = "grid_search";
template <>
inline constexpr std::string_view kStoredName<tune::SampleFrom> = "sample_from";
template <>
inline constexpr std::string_view kStoredName<tune::Constant> = "constant";
template <>
inline constexpr std::string_view kStoredName<tune::ListSpace> = "list";
template <>
inline constexpr std::string_view kStoredName<tune::NestedSpace> = "space";
template <>
inline constexpr std::string_view kStoredName<tune::Values> = "values";
template <>
inline constexpr std::string_view kStoredName<tune::NestedMutations> = "mutations";
}  // namespace cadre

namespace cadre::tune {
namespace {

using StoredEntry = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal, GridSearch,
                                 SampleFrom, Constant, ListSpace, NestedSpace>;
using StoredMutation = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal, SampleFrom,
                                    Values, NestedMutations>;
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

template <class Stored, class... Alternative>
Stored widened(const std::variant<Alternative...>& domain) {
  return std::visit([](const auto& one) { return Stored(one); }, domain);
}

StoredEntry to_stored_entry(const SpaceEntry& entry) {
  using Items = std::shared_ptr<const Entries>;
  using Nested = std::shared_ptr<const Space>;
  return std::visit(base::Overload{[](const Domain& domain) { return widened<StoredEntry>(domain); },
                                   [](const Value& constant) { return StoredEntry(Constant{constant}); },
                                   [](const Items& items) { return StoredEntry(ListSpace{items}); },
                                   [](const Nested& nested) { return StoredEntry(NestedSpace{*nested}); },
                                   [](const auto& other) { return StoredEntry(other); }},
                    entry.data());
}

SpaceEntry to_entry(const StoredEntry& entry) {
  return std::visit(base::Overload{[](const GridSearch& grid) { return SpaceEntry(grid); },
                                   [](const SampleFrom& function) { return SpaceEntry(function); },
                                   [](const Constant& constant) { return SpaceEntry(constant.value); },
                                   [](const ListSpace& list) { return SpaceEntry(Entries(*list.items)); },
                                   [](const NestedSpace& nested) { return SpaceEntry(nested.entries); },
                                   [](const auto& domain) { return SpaceEntry(Domain(domain)); }},
                    entry);
}

StoredMutation to_stored_mutation(const Mutation& mutation) {
  using Nested = std::shared_ptr<const Mutations>;
  return std::visit(base::Overload{[](const Domain& domain) { return widened<StoredMutation>(domain); },
                                   [](const List& values) { return StoredMutation(Values{values}); },
                                   [](const SampleFrom& function) { return StoredMutation(function); },
                                   [](const Nested& nested) { return StoredMutation(NestedMutations{*nested}); }},
                    mutation.data());
}

Mutation to_mutation(const StoredMutation& mutation) {
  return std::visit(base::Overload{[](const Values& values) { return Mutation(values.values); },
                                   [](const NestedMutations& nested) { return Mutation(nested.entries); },
                                   [](const SampleFrom& function) { return Mutation(function); },
                                   [](const auto& domain) { return Mutation(Domain(domain)); }},
                    mutation);
}

}  // namespace

Value stored_form(const Entries& entries) {
  std::vector<StoredEntry> stored;
  for (const SpaceEntry& entry : entries) stored.push_back(to_stored_entry(entry));
  return cadre::to_stored(stored);
}

void read_stored(Entries& entries, const cadre::Stored& stored) {
  std::vector<StoredEntry> read;
  cadre::from_stored(read, stored);
  for (const StoredEntry& entry : read) entries.push_back(to_entry(entry));
}

Value stored_form(const Space& space) {
  Named<StoredEntry> stored;
  for (const auto& [key, entry] : space) stored.emplace_back(key, to_stored_entry(entry));
  return cadre::to_stored(stored);
}

void read_stored(Space& space, const cadre::Stored& stored) {
  Named<StoredEntry> read;
  cadre::from_stored(read, stored);
  for (const auto& [key, entry] : read) space.emplace_back(key, to_entry(entry));
}

Value stored_form(const Mutations& mutations) {
  Named<StoredMutation> stored;
  for (const auto& [key, mutation] : mutations) stored.emplace_back(key, to_stored_mutation(mutation));
  return cadre::to_stored(stored);
}

void read_stored(Mutations& mutations, const cadre::Stored& stored) {
  Named<StoredMutation> read;
  cadre::from_stored(read, stored);
  for (const auto& [key, mutation] : read) mutations.emplace_back(key, to_mutation(mutation));
}

// ---- Stopping

// The usual direction is stored as a plain number.
// A template, so that nothing is converted to a threshold: g++ would use the constructor that only names a mistake.
template <std::same_as<Threshold> T>
Value stored_form(const T& threshold) {
  if (threshold.mode == Mode::min) return Dict{{"at_most", threshold.value}};
  return threshold.value;
}

void read_stored(Threshold& threshold, const cadre::Stored& stored) {
  struct Limit {
    double at_most = 0;
  };
  if (stored.value().is_number()) {
    threshold = at_least(stored.get<double>());
  } else {
    threshold = at_most(cadre::from_stored<Limit>(stored).at_most);
  }
}

namespace {

struct StoredStop {
  Thresholds thresholds = {};
  std::vector<AnyStopper> stoppers = {};
};

}  // namespace

Value stored_form(const Stop& stop) { return cadre::to_stored(StoredStop{stop.thresholds, stop.stoppers}); }

void read_stored(Stop& stop, const cadre::Stored& stored) {
  auto read = cadre::from_stored<StoredStop>(stored);
  stop.thresholds = std::move(read.thresholds);
  stop.stoppers = std::move(read.stoppers);
}

// ---- Extensions

// Has only the members that are set.
Value stored_form(const Extension& extension) {
  Dict stored;
  cadre::detail::for_each_stored_member(extension, [&](std::string_view name, const auto& member) {
    if (member) stored.emplace_back(name, cadre::to_stored(*member));
  });
  return stored;
}

void read_stored(Extension& extension, const cadre::Stored& stored) { cadre::from_stored(extension, stored, {}); }

// ---- The whole

Dict describe(const Trainable& trainable, const TunerOptions& options) {
  Dict description{{"kind", store::experiment_tenant.kind}, {"trainable", cadre::to_stored(trainable)}};
  const Value stored = cadre::to_stored(options);
  description.insert(description.end(), stored.dict().begin(), stored.dict().end());
  return description;
}

Description to_description(const Value& form) {
  Description description;
  const cadre::Stored whole(form);
  if (const Value* trainable = find_entry(whole.dict(), "trainable"))
    cadre::from_stored(description.trainable, whole.at("trainable", *trainable));
  cadre::from_stored(description.options, whole, {"kind", "trainable"});
  return description;
}

Description parse_description(const Value& stored, const std::string& source) {
  return cadre::reading(source, [&] {
    const cadre::Stored whole(stored);
    const Value* kind = find_entry(whole.dict(), "kind");
    if (kind != nullptr && whole.at("kind", *kind).get<std::string>() != store::experiment_tenant.kind)
      throw StorageError(source + " are those of a training run, which train::Trainer::restore continues");
    return to_description(stored);
  });
}

}  // namespace cadre::tune
