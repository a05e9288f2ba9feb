#include "tune/schedulers/explore.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "base/json.h"
#include "base/overload.h"
#include "tune/domain.h"
#include "tune/functions.h"
#include "tune/options/check_search_space.h"

namespace cadre::tune {
namespace {

// ---- Checks

using Nested = std::shared_ptr<const Space>;

bool draws_integers(const SpaceEntry& entry) {
  const auto* domain = std::get_if<Domain>(&entry.data());
  const auto* constant = std::get_if<Value>(&entry.data());
  return (domain != nullptr &&
          (std::holds_alternative<RandInt>(*domain) || std::holds_alternative<LogRandInt>(*domain))) ||
         (constant != nullptr && constant->is_integer());
}

bool holds_an_integer(const Domain& domain) {
  const auto between = [](double lower, double upper) { return std::ceil(lower) <= std::floor(upper); };
  if (const auto* real = std::get_if<Uniform>(&domain)) return between(real->lower, real->upper);
  if (const auto* real = std::get_if<LogUniform>(&domain)) return between(real->lower, real->upper);
  return true;
}

// Collects the spaces that may contain the keys of a nested mutation: the nested space or, in a conditional space,
// several.
void spaces_below(const SpaceEntry& entry, std::vector<const Space*>& found) {
  const auto look_into = [&](const Entries& options) {
    for (const SpaceEntry& option : options) spaces_below(option, found);
  };
  if (const auto* nested = std::get_if<Nested>(&entry.data())) found.push_back(nested->get());
  if (const auto* grid = std::get_if<GridSearch>(&entry.data())) look_into(*grid->options);
  if (const auto* domain = std::get_if<Domain>(&entry.data())) {
    if (const auto* choice = std::get_if<Choice>(domain)) look_into(*choice->options);
  }
}

void check_mutations(const Mutations& mutations, const std::vector<const Space*>& spaces, const std::string& path,
                     Faults& faults);

void check_mutation(const Mutation& mutation, const SpaceEntry& entry, const std::string& name, Faults& faults) {
  std::vector<const Space*> below;
  spaces_below(entry, below);
  if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data())) {
    if (below.empty()) return faults.add(name, "nested mutations need a nested search space under this key");
    return check_mutations(**nested, below, name + " > ", faults);
  }
  if (!below.empty()) return faults.add(name, "the search space has a nested space under this key: mutate its keys");
  if (const auto* function = std::get_if<SampleFrom>(&mutation.data())) return check_function(*function, name, faults);
  if (const auto* domain = std::get_if<Domain>(&mutation.data())) {
    check_domain(*domain, name, faults);
    List options;
    faults.unless(constant_options(*domain, options), name, "the options of a mutation must be plain values");
    if (fault_of(*domain).empty() && draws_integers(entry) && !holds_an_integer(*domain))
      faults.add(name, to_string(*domain) + " holds no integer, but param_space has integers under this key");
  } else {
    faults.unless(!std::get<List>(mutation.data()).empty(), name, "the list has no values");
  }
}

void check_mutations(const Mutations& mutations, const std::vector<const Space*>& spaces, const std::string& path,
                     Faults& faults) {
  for (auto mutation = mutations.begin(); mutation != mutations.end(); ++mutation) {
    const std::string& key = mutation->first;
    const std::string name = path + "\"" + key + "\"";
    if (std::any_of(mutations.begin(), mutation, [&](const auto& earlier) { return earlier.first == key; }))
      faults.add(name, "the key is there twice");
    bool found = false;
    for (const Space* space : spaces) {
      const SpaceEntry* entry = find(*space, key);
      if (entry == nullptr || found) continue;
      found = true;
      check_mutation(mutation->second, *entry, name, faults);
    }
    faults.unless(found, name, "param_space has no such key; it has: " + keys_of(*spaces.front()));
  }
}

// ---- Exploring

std::int64_t rounded(double value) {
  constexpr double limit = 0x1p62;
  return static_cast<std::int64_t>(std::nearbyint(std::clamp(value, -limit, limit)));  // half to even, as Python
}

class Mutator {
 public:
  Mutator(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random,
          std::vector<Perturbation>& made)
      : donor_(donor), settings_(settings), random_(random), made_(made) {}

  Dict explore(const Dict& donor, const Mutations& mutations, const std::string& prefix) {
    Config config(donor);
    for (const auto& [key, mutation] : mutations) {
      const Value* old_value = find_entry(donor, key);
      if (old_value == nullptr) continue;  // the donor's option of a conditional space lacks the key
      config.set(key, mutate(prefix + key, *old_value, mutation));
    }
    return config.dict();
  }

 private:
  Value mutate(const std::string& path, const Value& old_value, const Mutation& mutation) {
    using Made = std::pair<std::string, Value>;
    if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data()))
      return old_value.is_dict() ? Value(explore(old_value.dict(), **nested, path + "/")) : old_value;
    auto [operation, value] =
        std::visit(base::Overload{[&](const Domain& domain) { return within_or_along(domain, old_value); },
                                  [&](const List& values) { return along(values, old_value); },
                                  [&](const SampleFrom& function) { return by_function(function, old_value); },
                                  [&](const auto&) { return Made("", old_value); }},
                   mutation.data());
    made_.push_back({path, old_value, std::move(operation), value});
    return value;
  }

  std::pair<std::string, Value> within_or_along(const Domain& domain, const Value& old_value) {
    List options;
    constant_options(domain, options);
    return options.empty() ? within(domain, old_value) : along(options, old_value);
  }

  // Moves to a neighbour in the list.
  std::pair<std::string, Value> along(const List& values, const Value& old_value) {
    const auto place = std::ranges::find_if(values, [&](const Value& value) { return same(value, old_value); });
    if (resample() || place == values.end()) return {"resample", values[random_.below(values.size())]};
    const bool right = random_.below(2) == 1;
    const bool at_end = right ? place + 1 == values.end() : place == values.begin();
    const std::string direction = right ? "shift right" : "shift left";
    if (at_end) return {direction + " (noop)", *place};
    return {direction, right ? *(place + 1) : *(place - 1)};
  }

  // Multiplies by a factor, inside a domain of numbers. Keeps the type of the old value.
  std::pair<std::string, Value> within(const Domain& domain, const Value& old_value) {
    if (resample() || !old_value.is_number()) {
      const SpaceEntry drawn = sample(domain, random_);
      return {"resample", keep_inside(domain, with_type_of(old_value, std::get<Value>(drawn.data())), Bounds::clip)};
    }
    const double factor = draw_factor();
    const Value moved = times(old_value, factor, smallest_step(domain, old_value));
    return {operation(factor), keep_inside(domain, moved, settings_.bounds)};
  }

  // Multiplies by a factor, or draws from the user's function.
  std::pair<std::string, Value> by_function(const SampleFrom& function, const Value& old_value) {
    if (resample() || !old_value.is_number()) {
      Random random(random_);
      return {"resample", with_type_of(old_value, call(function, donor_, random))};
    }
    const double factor = draw_factor();
    return {operation(factor), times(old_value, factor, old_value.is_integer() ? 1 : 0)};
  }

  bool resample() { return random_.uniform() < settings_.resample_probability; }

  // Compares numbers by value, integer or not.
  static bool same(const Value& a, const Value& b) {
    return a == b || (a.is_number() && b.is_number() && a.get<double>() == b.get<double>());
  }

  double draw_factor() {
    const auto& [first, second] = settings_.perturbation_factors;
    return random_.below(2) == 0 ? first : second;
  }

  static std::string operation(double factor) {
    std::string text = "* ";
    base::append_python_float(text, factor);
    return text;
  }

  // Moves by at least one step, if there are steps: rounding must not undo it, and 1 * 1.2 is 2.
  static Value times(const Value& value, double factor, double step) {
    const auto number = value.get<double>();
    double next = number * factor;
    const bool stays = step > 0 && std::nearbyint(next / step) == std::nearbyint(number / step);
    if (stays && factor != 1) next = (factor > 1) == (number >= 0) ? number + step : number - step;
    return value.is_integer() ? Value(rounded(next)) : Value(next);
  }

  const Config& donor_;
  const PopulationBasedTraining& settings_;
  base::RandomStream& random_;
  std::vector<Perturbation>& made_;
};

}  // namespace

std::vector<Perturbation> changes(const Config& before, const Config& after, const std::string& operation) {
  std::vector<Perturbation> made;
  for (const auto& [key, value] : after) {
    const Value* old_value = before.find(key);
    if (old_value == nullptr || *old_value != value)
      made.push_back({key, old_value ? *old_value : Value(), operation, value});
  }
  return made;
}

Explored explore(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random) {
  Explored explored;
  Mutator mutator(donor, settings, random, explored.perturbations);
  explored.config = Config(mutator.explore(donor.dict(), settings.hyperparam_mutations, ""));
  customize(explored, settings.custom_explore_fn, random);
  return explored;
}

void customize(Explored& explored, const ExploreFunction& function, base::RandomStream& random) {
  if (function.function.empty()) return;
  Random numbers(random);
  Config custom = call(function, explored.config, numbers);
  std::ranges::move(changes(explored.config, custom, "custom_explore_fn"), std::back_inserter(explored.perturbations));
  explored.config = std::move(custom);
}

Value with_type_of(const Value& old_value, const Value& drawn) {
  if (!drawn.is_number()) return drawn;
  if (old_value.is_integer()) return rounded(drawn.get<double>());
  return old_value.is_double() ? Value(drawn.get<double>()) : drawn;
}

std::vector<std::pair<std::string, std::string>> operations_of(const std::vector<Perturbation>& perturbations) {
  std::vector<std::pair<std::string, std::string>> operations;
  for (const Perturbation& made : perturbations) operations.emplace_back(made.key, made.operation);
  return operations;
}

void check_mutations(const Mutations& mutations, const Space& space, Faults& faults, const std::string& option) {
  check_mutations(mutations, {&space}, option, faults);
}

Mutations with_sorted_bounds(const Mutations& mutations, const std::string& path, std::vector<std::string>& notes) {
  Mutations result;
  for (const auto& [key, mutation] : mutations) {
    const std::string name = path + "\"" + key + "\"";
    const auto* domain = std::get_if<Domain>(&mutation.data());
    const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data());
    result.emplace_back(key, domain   ? Mutation(with_sorted_bounds(*domain, name, notes))
                             : nested ? Mutation(with_sorted_bounds(**nested, name + " > ", notes))
                                      : mutation);
  }
  return result;
}

std::vector<std::string> mutated_keys(const Mutations& mutations) {
  std::vector<std::string> paths;
  for (const auto& [key, mutation] : mutations) {
    if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data())) {
      for (const std::string& path : mutated_keys(**nested)) paths.push_back(key + "/" + path);
    } else {
      paths.push_back(key);
    }
  }
  return paths;
}

}  // namespace cadre::tune
