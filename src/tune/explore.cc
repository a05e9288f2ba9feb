#include "tune/explore.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "tune/domain.h"

namespace cadre::tune {
namespace {

class Explorer {
 public:
  Explorer(const PopulationBasedTraining& settings, base::RandomStream& random, std::vector<Perturbation>& made)
      : settings_(settings), random_(random), made_(made) {}

  Dict explore(const Dict& donor, const Mutations& mutations, const std::string& prefix) {
    Config config(donor);
    for (const auto& [key, mutation] : mutations) {
      const std::string path = prefix + key;
      config.set(key, mutate(path, config.at(key), mutation));
    }
    return config.dict();
  }

 private:
  Value mutate(const std::string& path, const Value& old_value, const Mutation& mutation) {
    if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data()))
      return explore(old_value.dict(), **nested, path + "/");
    const auto* domain = std::get_if<Domain>(&mutation.data());
    const auto* choice = domain ? std::get_if<Choice>(domain) : nullptr;
    auto [operation, value] = choice   ? along(choice->options, old_value)
                              : domain ? within(*domain, old_value)
                                       : along(std::get<List>(mutation.data()), old_value);
    made_.push_back({path, old_value, std::move(operation), value});
    return value;
  }

  // To a neighbour in a list.
  std::pair<std::string, Value> along(const List& values, const Value& old_value) {
    const auto place = std::ranges::find_if(values, [&](const Value& value) { return same(value, old_value); });
    if (resample() || place == values.end()) return {"resample", values[random_.below(values.size())]};
    const bool right = random_.below(2) == 1;
    const bool at_end = right ? place + 1 == values.end() : place == values.begin();
    const std::string direction = right ? "shift right" : "shift left";
    if (at_end) return {direction + " (noop)", *place};
    return {direction, right ? *(place + 1) : *(place - 1)};
  }

  // By a factor, inside a domain of numbers. The type of the old value stays.
  std::pair<std::string, Value> within(const Domain& domain, const Value& old_value) {
    if (resample() || !old_value.is_number()) {
      return {"resample", with_type_of(old_value, sample(domain, random_), domain)};
    }
    const auto& [first, second] = settings_.perturbation_factors;
    const double factor = random_.below(2) == 0 ? first : second;
    std::string operation = "* ";
    base::append_python_float(operation, factor);
    if (old_value.is_integer()) return {operation, clip(domain, moved(old_value.get<std::int64_t>(), factor))};
    return {operation, clip(domain, old_value.get<double>() * factor)};
  }

  bool resample() { return random_.uniform() < settings_.resample_probability; }

  // Numbers are the same value whether they are integers or not.
  static bool same(const Value& a, const Value& b) {
    return a == b || (a.is_number() && b.is_number() && a.get<double>() == b.get<double>());
  }

  static Value with_type_of(const Value& old_value, const Value& drawn, const Domain& domain) {
    if (!drawn.is_number()) return drawn;
    if (old_value.is_integer()) return clip(domain, rounded(drawn.get<double>()));
    return old_value.is_double() ? Value(drawn.get<double>()) : drawn;
  }

  static std::int64_t rounded(double value) {
    constexpr double limit = 0x1p62;
    return static_cast<std::int64_t>(std::nearbyint(std::clamp(value, -limit, limit)));  // half to even, as Python
  }

  // Rounding must not undo the step: 1 * 1.2 is 2.
  static std::int64_t moved(std::int64_t value, double factor) {
    const std::int64_t next = rounded(static_cast<double>(value) * factor);
    if (next != value || factor == 1) return next;
    const bool up = (factor > 1) == (value >= 0);
    return up ? value + 1 : value - 1;
  }

  const PopulationBasedTraining& settings_;
  base::RandomStream& random_;
  std::vector<Perturbation>& made_;
};

}  // namespace

Explored explore(const Config& donor, const PopulationBasedTraining& settings, base::RandomStream& random) {
  Explored explored;
  Explorer explorer(settings, random, explored.perturbations);
  explored.config = Config(explorer.explore(donor.dict(), settings.hyperparam_mutations, ""));
  return explored;
}

}  // namespace cadre::tune
