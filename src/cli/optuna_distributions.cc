#include "cli/optuna_distributions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "base/host_object.h"
#include "base/json.h"
#include "base/utf8.h"

namespace cadre::cli {
namespace {

using tune::ExploitRecord;

// Facts about a parameter: the entries of the search space at its path, in all options of choices, and the
// different values of the trials.
struct Parameter {
  std::vector<const Dict*> domains = {};
  List values = {};
};

using Parameters = std::map<std::string, Parameter>;

std::string_view type_of(const Dict& entry) {
  const Value* const type = find_entry(entry, "type");
  return type != nullptr && type->is_string() ? std::get<std::string>(type->data()) : std::string_view();
}

std::string joined(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "/" + key;
}

// Adds the domains at and below a path to the parameters that are known.
void add_domains(const Value& stored, const std::string& path, Parameters& parameters) {
  if (!stored.is_dict()) return;
  const Dict& entry = stored.dict();
  const std::string_view type = type_of(entry);
  const Value* const entries = find_entry(entry, "entries");
  if (type == "space" && entries != nullptr && entries->is_dict()) {
    for (const auto& [key, inner] : entries->dict()) add_domains(inner, joined(path, key), parameters);
    return;
  }
  if (const auto known = parameters.find(path); known != parameters.end()) known->second.domains.push_back(&entry);
  const Value* const options = find_entry(entry, "options");
  if (type != "choice" || options == nullptr || !options->is_list()) return;
  for (const Value& option : options->items()) {
    if (option.is_dict() && type_of(option.dict()) == "space") add_domains(option, path, parameters);
  }
}

Parameters drawn_parameters(const tune::ResultGrid& grid) {
  std::set<std::string> paths;
  for (const tune::Result& trial : grid) {
    for (const auto& [path, value] : trial.sampled) paths.insert(path);
    for (const ExploitRecord& exploit : trial.exploits) {
      for (const ExploitRecord::Change& change : exploit.changes) paths.insert(change.key);
    }
  }
  Parameters parameters;
  for (const std::string& path : paths) {
    Parameter& parameter = parameters[path];
    std::set<std::string> known;  // as JSON
    for (const tune::Result& trial : grid) {
      const Value* const value = trial.config.find(path);
      if (value == nullptr) continue;
      const Value choice = optuna_choice(*value);
      if (known.insert(to_json(choice)).second) parameter.values.push_back(choice);
    }
  }
  if (const Value* const space = grid.summary().options.find("param_space"); space != nullptr && space->is_dict()) {
    for (const auto& [key, entry] : space->dict()) add_domains(entry, key, parameters);
  }
  return parameters;
}

// ---- Numbers

struct Range {
  double low = 0;
  double high = 0;
  bool whole = false;
  bool logarithmic = false;
  double step = 0;  // 0: none
};

double number_in(const Dict& entry, std::string_view key) {
  const Value* const value = find_entry(entry, key);
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

bool is_multiple(double value, double step) {
  const double times = value / step;
  return std::abs(times - std::round(times)) < 1e-9;
}

// Returns the range of a domain; empty if it has none.
std::optional<Range> range_of(const Dict& domain) {
  const std::string_view type = type_of(domain);
  Range range{.low = number_in(domain, "lower"), .high = number_in(domain, "upper")};
  range.logarithmic = type.starts_with("log");
  if (type == "uniform" || type == "loguniform") {
    const double q = number_in(domain, "q");
    if (q > 0 && !range.logarithmic && is_multiple(range.low, q)) range.step = q;
    return range;
  }
  if (type != "randint" && type != "lograndint") return std::nullopt;
  range.whole = true;
  const double q = number_in(domain, "q");
  if (q <= 1) {
    range.high -= 1;  // the upper bound is none of the values
  } else if (!range.logarithmic && is_multiple(range.low, q)) {
    range.step = q;
  }
  return range;
}

// Returns the range with all values in it.
Range widened(Range range, const List& values) {
  for (const Value& value : values) {
    const auto number = value.get<double>();
    if (number < range.low || number > range.high || (range.step > 0 && !is_multiple(number - range.low, range.step)))
      range.step = 0;
    range.low = std::min(range.low, number);
    range.high = std::max(range.high, number);
    range.whole &= value.is_integer();
  }
  range.logarithmic &= range.low > 0;
  return range;
}

bool are_numbers(const List& values) {
  return std::ranges::all_of(
      values, [](const Value& value) { return value.is_number() && std::isfinite(value.get<double>()); });
}

OptunaDistribution numbers_in(const Range& range) {
  Dict attributes;
  if (range.whole) {
    attributes = {{"log", range.logarithmic},
                  {"step", static_cast<std::int64_t>(std::max(range.step, 1.0))},
                  {"low", static_cast<std::int64_t>(range.low)},
                  {"high", static_cast<std::int64_t>(range.high)}};
  } else {
    attributes = {{"step", range.step > 0 ? Value(range.step) : Value()},
                  {"low", range.low},
                  {"high", range.high},
                  {"log", range.logarithmic}};
  }
  return {.json = base::to_json(Dict{{"name", range.whole ? "IntDistribution" : "FloatDistribution"},
                                     {"attributes", std::move(attributes)}})};
}

// ---- Choices

// Returns the options of a choice, an ordinal or a grid search, of which spaces are none; empty if it is none of these.
List options_of(const Dict& domain) {
  List options;
  const Value* found = find_entry(domain, "options");
  if (found == nullptr) found = find_entry(domain, "values");
  if (type_of(domain) == "constant") return {optuna_choice(domain.back().second)};
  if (found == nullptr || !found->is_list()) return options;
  for (const Value& option : found->items()) {
    const bool is_entry = option.is_dict() && !type_of(option.dict()).empty();
    const Value* const constant = is_entry ? find_entry(option.dict(), "value") : &option;
    if (constant != nullptr) options.push_back(optuna_choice(*constant));
  }
  return options;
}

OptunaDistribution choices_of(List choices) {
  OptunaDistribution distribution{.json = base::to_json(Dict{{"name", "CategoricalDistribution"},
                                                             {"attributes", Dict{{"choices", Value(choices)}}}}),
                                  .categorical = true};
  distribution.choices = std::move(choices);
  return distribution;
}

OptunaDistribution distribution_of(const Parameter& parameter) {
  const bool numbers = are_numbers(parameter.values);
  const std::optional<Range> range =
      parameter.domains.size() == 1 ? range_of(*parameter.domains.front()) : std::nullopt;
  if (range && numbers) return numbers_in(widened(*range, parameter.values));
  List choices;
  for (const Dict* const domain : parameter.domains) {
    for (const Value& option : options_of(*domain)) {
      if (std::ranges::find(choices, option) == choices.end()) choices.push_back(option);
    }
  }
  const bool are_all_options = std::ranges::all_of(
      parameter.values, [&](const Value& value) { return std::ranges::find(choices, value) != choices.end(); });
  if (!are_all_options && numbers && are_numbers(choices)) {  // perturbed, or of a function or a normal distribution
    const auto first = parameter.values.front().get<double>();
    choices.insert(choices.end(), parameter.values.begin(), parameter.values.end());
    return numbers_in(widened({.low = first, .high = first, .whole = true}, choices));
  }
  for (const Value& value : parameter.values) {
    if (std::ranges::find(choices, value) == choices.end()) choices.push_back(value);
  }
  return choices_of(std::move(choices));
}

}  // namespace

Value optuna_choice(const Value& value) {
  const Value plain = base::without_host_objects(value);
  if (plain.is_string()) return base::to_utf8(plain.get<std::string>());
  const bool is_other = plain.is_list() || plain.is_dict() || std::holds_alternative<Reference>(plain.data());
  return is_other ? Value(to_json(plain)) : plain;
}

double OptunaDistribution::internal(const Value& value) const {
  if (!categorical) return optuna_choice(value).get<double>();
  return static_cast<double>(std::ranges::find(choices, optuna_choice(value)) - choices.begin());
}

std::map<std::string, OptunaDistribution> optuna_distributions(const tune::ResultGrid& grid) {
  std::map<std::string, OptunaDistribution> distributions;
  for (const auto& [path, parameter] : drawn_parameters(grid)) {
    if (!parameter.values.empty()) distributions.emplace(path, distribution_of(parameter));
  }
  return distributions;
}

}  // namespace cadre::cli
