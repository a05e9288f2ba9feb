#include "tune/explore.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json.h"
#include "base/overload.h"
#include "tune/domain.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

class Explorer {
 public:
  Explorer(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random,
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
      return {"resample", with_type_of(old_value, (*sample_functions().find(function.function))(donor_, random))};
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

  static Value with_type_of(const Value& old_value, const Value& drawn) {
    if (!drawn.is_number()) return drawn;
    if (old_value.is_integer()) return rounded(drawn.get<double>());
    return old_value.is_double() ? Value(drawn.get<double>()) : drawn;
  }

  static std::int64_t rounded(double value) {
    constexpr double limit = 0x1p62;
    return static_cast<std::int64_t>(std::nearbyint(std::clamp(value, -limit, limit)));  // half to even, as Python
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
  Explorer explorer(donor, settings, random, explored.perturbations);
  explored.config = Config(explorer.explore(donor.dict(), settings.hyperparam_mutations, ""));
  if (settings.custom_explore_fn.function.empty()) return explored;
  Random numbers(random);
  Config custom = (*explore_functions().find(settings.custom_explore_fn.function))(explored.config, numbers);
  std::ranges::move(changes(explored.config, custom, "custom_explore_fn"), std::back_inserter(explored.perturbations));
  explored.config = std::move(custom);
  return explored;
}

}  // namespace cadre::tune
