#include "tune/options/check_search_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/overload.h"
#include "control/config_struct.h"
#include "tune/domain.h"
#include "tune/functions.h"
#include "tune/schedulers/policy_file.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

using Items = std::shared_ptr<const Entries>;
using Nested = std::shared_ptr<const Space>;

void check_keys(const Space& space, const std::string& path, Faults& faults) {
  for (auto entry = space.begin(); entry != space.end(); ++entry) {
    const std::string& key = entry->first;
    const std::string name = path + "\"" + key + "\"";
    if (key.empty() || key.find('/') != key.npos) faults.add(name, "a key must not be empty or contain '/'");
    if (std::any_of(space.begin(), entry, [&](const auto& earlier) { return earlier.first == key; }))
      faults.add(name, "the key is there twice");
  }
}

// `drawn`: the entry is inside the options of a choice, so the number of its trials is unknown before the draw.
void check_entry(const SpaceEntry& entry, const std::string& name, bool drawn, Faults& faults) {
  std::visit(
      base::Overload{[&](const Domain& domain) {
                       check_domain(domain, name, faults);
                       const auto* choice = std::get_if<Choice>(&domain);
                       if (choice == nullptr) return;
                       for (const SpaceEntry& option : *choice->options) check_entry(option, name, true, faults);
                     },
                     [&](const GridSearch& grid) {
                       faults.unless(!grid.options->empty(), name, "the grid has no options");
                       faults.unless(!drawn, name,
                                     "a grid inside a choice: how many trials there are would depend on what is drawn. "
                                     "Make the choice a grid, or the grid a choice");
                       for (const SpaceEntry& option : *grid.options) check_entry(option, name, drawn, faults);
                     },
                     [&](const SampleFrom& function) { check_function(function, name, faults); }, [](const Value&) {},
                     [&](const Items& items) {
                       for (const SpaceEntry& item : *items) check_entry(item, name, drawn, faults);
                     },
                     [&](const Nested& space) {
                       for (const auto& [key, item] : *space)
                         check_entry(item, name + " > \"" + key + "\"", drawn, faults);
                       check_keys(*space, name + " > ", faults);
                     }},
      entry.data());
}

const SpaceEntry* find_path(const Space& space, const std::string& path) {
  const auto slash = path.find('/');
  const SpaceEntry* entry = find(space, path.substr(0, slash));
  if (entry == nullptr || slash == path.npos) return entry;
  const auto* nested = std::get_if<Nested>(&entry->data());
  return nested == nullptr ? nullptr : find_path(**nested, path.substr(slash + 1));
}

}  // namespace

void check_point(const Dict& point, const Space& space, const std::string& name, Faults& faults) {
  for (const auto& [key, value] : point) {
    const std::string where = name + " \"" + key + "\"";
    const SpaceEntry* entry = find_path(space, key);
    if (entry == nullptr) {
      faults.add(where, "param_space has no such key; it has: " + keys_of(space));
      continue;
    }
    const auto* nested = std::get_if<Nested>(&entry->data());
    if (nested != nullptr && value.is_dict()) {
      check_point(value.dict(), **nested, where + " >", faults);
    } else {
      faults.unless(nested == nullptr && contains(*entry, value), where,
                    fmt::format("{} is not in {}", to_json(value), to_string(*entry)));
    }
  }
}

const SpaceEntry* find(const Space& space, const std::string& key) {
  const auto entry = std::ranges::find(space, key, &Space::value_type::first);
  return entry == space.end() ? nullptr : &entry->second;
}

std::string keys_of(const Space& space) {
  return space.empty() ? "none" : fmt::format("{}", fmt::join(std::views::keys(space), ", "));
}

void check_domain(const Domain& domain, const std::string& name, Faults& faults) {
  const std::string fault = fault_of(domain);
  if (!fault.empty()) faults.add(name, to_string(domain) + " cannot be drawn from: " + fault);
}

void check_function(const SampleFrom& function, const std::string& name, Faults& faults) {
  check_registered(sample_functions(), function, name, faults);
}

void check_space(const Space& space, Faults& faults) {
  check_keys(space, "param_space ", faults);
  for (const auto& [key, entry] : space) check_entry(entry, "param_space \"" + key + "\"", false, faults);
}

void check_trials(const TunerOptions& options, Faults& faults) {
  const TuneConfig& tune = options.tune_config;
  for (std::size_t i = 0; i < tune.points_to_evaluate.size(); ++i)
    check_point(tune.points_to_evaluate[i].dict(), options.param_space, fmt::format("points_to_evaluate[{}]", i),
                faults);
  const std::int64_t trials = VariantGenerator(options.param_space, tune).size();
  faults.unless(trials <= kMostTrials, "param_space",
                "its grids and num_samples make more than 2^31 trials; at most so many are possible");
}

// Checks only functions that take a struct.
void check_config_type(const Trainable& trainable, const TunerOptions& options, Faults& faults) {
  const TrainableType* known = type_of(trainable);
  const cadre::detail::ConfigStruct* type = known == nullptr ? nullptr : &known->config.config;
  if (type == nullptr || type->check == nullptr) return;
  for (const auto& [key, entry] : options.param_space) {
    faults.unless(control::has_member(*type, key), "param_space \"" + key + "\"",
                  control::no_such_member(*type, trainable.name));
  }
  const Variant first = VariantGenerator(options.param_space, options.tune_config)(0);
  if (!first.fault.empty()) return;  // the trial will fail with it
  const auto check = [&](const Config& config, const std::string& option, const std::string& whose) {
    try {
      type->check(config);
    } catch (const Error& error) {
      faults.add(option, fmt::format("{} cannot take {} config: {}", trainable.name, whose, error.what()));
    }
  };
  check(first.config, "param_space", "the first trial's");
  const AnyScheduler& scheduler = options.tune_config.scheduler;
  for (const auto& [whose, config] : scheduler.held().later_configs(first.config))
    check(config, fmt::format("scheduler ({})", scheduler.name()), whose);
}

}  // namespace cadre::tune
