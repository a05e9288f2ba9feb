#include "tune/searchers/variant_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <new>
#include <utility>

#include "base/checksum.h"
#include "base/host_object.h"
#include "base/json.h"
#include "base/overload.h"
#include "base/random.h"
#include "tune/domain.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace {

using base::Overload;
using List = std::shared_ptr<const Entries>;
using Nested = std::shared_ptr<const Space>;

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "/" + key; }

bool is_nested(const SpaceEntry& entry) { return std::holds_alternative<Nested>(entry.data()); }

// ---- The number of combinations of grids

std::int64_t combinations(const SpaceEntry& entry, const std::string& path, const Config& point, std::int64_t limit) {
  if (!is_nested(entry) && point.contains(path)) return 1;
  std::int64_t count = 1;
  const auto multiply = [&](const SpaceEntry& part, const std::string& part_path) {
    count = std::min(limit, count * combinations(part, part_path, point, limit));
  };
  std::visit(Overload{[&](const GridSearch& grid) {
                        count = 0;
                        for (const SpaceEntry& option : *grid.options)
                          count = std::min(limit, count + combinations(option, path, point, limit));
                      },
                      [&](const List& items) {
                        for (const SpaceEntry& item : *items) multiply(item, path);
                      },
                      [&](const Nested& space) {
                        for (const auto& [key, item] : *space) multiply(item, join(path, key));
                      },
                      [](const auto&) {}},
             entry.data());
  return count;
}

// ---- Values that differ between trials

bool varies(const SpaceEntry& entry, const std::string& path, const Config& point) {
  if (is_nested(entry)) return false;  // not as a whole; its entries may
  if (point.contains(path)) return true;
  return std::visit(Overload{[](const Value&) { return false; },
                             [&](const List& items) {
                               return std::ranges::any_of(
                                   *items, [&](const SpaceEntry& item) { return varies(item, path, point); });
                             },
                             [](const auto&) { return true; }},
                    entry.data());
}

void add_all(const std::string& path, const Value& value, Dict& sampled) {
  if (!value.is_dict() || value.dict().empty()) {
    sampled.emplace_back(path, value);
    return;
  }
  if (const Value* text = base::text_of_host_object(value)) {
    sampled.emplace_back(path, *text);
    return;
  }
  for (const auto& [key, inner] : value.dict()) add_all(join(path, key), inner, sampled);
}

void add_sampled(const Space& space, const Config& point, const Dict& config, const std::string& prefix,
                 Dict& sampled) {
  for (const auto& [key, value] : config) {
    const auto entry = std::ranges::find(space, key, &Space::value_type::first);
    const std::string path = join(prefix, key);
    if (entry == space.end()) {
      add_all(path, value, sampled);  // a searcher has suggested it
    } else if (const auto* nested = std::get_if<Nested>(&entry->second.data())) {
      if (value.is_dict()) add_sampled(**nested, point, value.dict(), path, sampled);
    } else if (varies(entry->second, path, point)) {
      add_all(path, value, sampled);
    }
  }
}

// Returns the sampled values of a config drawn from the space; `point` is the point to evaluate, or empty.
Dict sampled_of(const Space& space, const Config& point, const Dict& config) {
  Dict sampled;
  add_sampled(space, point, config, "", sampled);
  return sampled;
}

// Adds what a suggestion has and the space lacks: a value at a path.
void add_missing(const std::string& path, const Value& value, Space& space) {
  const auto slash = path.find('/');
  const std::string key = path.substr(0, slash);
  auto entry = std::ranges::find(space, key, &Space::value_type::first);
  if (entry == space.end()) {
    space.emplace_back(key, slash == path.npos ? SpaceEntry(value) : SpaceEntry(Space()));
    entry = std::prev(space.end());
  }
  const auto* nested = std::get_if<Nested>(&entry->second.data());
  if (nested == nullptr || (slash == path.npos && !value.is_dict())) return;
  Space inner = **nested;
  if (slash != path.npos) {
    add_missing(path.substr(slash + 1), value, inner);
  } else {
    for (const auto& [inner_key, inner_value] : value.dict()) add_missing(inner_key, inner_value, inner);
  }
  entry->second = SpaceEntry(std::move(inner));
}

// ---- The config of one trial

// Computes the config of one trial from the space. `path` names an entry; `place`, which also distinguishes the items
// of a list, keys its random numbers.
class Resolver {
 public:
  Resolver(const Config& point, std::uint64_t seed, std::uint32_t stream, std::int64_t combination)
      : point_(point), seed_(seed), stream_(stream), combination_(combination) {}

  Variant resolve(const Space& space) {
    SpaceEntry settled = without_draws(SpaceEntry(space), "", "");
    Variant variant;
    variant.config = Config(without_functions(settled).dict());
    try {
      while (call_first_function(settled, variant.config)) variant.config = Config(without_functions(settled).dict());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      variant.fault = error.what();
    }
    return variant;
  }

 private:
  // A function to call after everything else is drawn. A settled entry refers to it by its index in `calls_`.
  struct Call {
    SampleFrom function;
    std::string path;
    std::string place;
  };

  // Returns the entry with values for all domains and grids.
  SpaceEntry without_draws(const SpaceEntry& entry, const std::string& path, const std::string& place) {
    if (const Value* given = is_nested(entry) ? nullptr : point_.find(path)) return *given;
    return std::visit(Overload{[&](const Domain& domain) {
                                 base::RandomStream random = stream_at(place);
                                 return without_draws(sample(domain, random), path, place + "/option");
                               },
                               [&](const GridSearch& grid) {
                                 return without_draws(take_option(grid, path), path, place + "/option");
                               },
                               [&](const SampleFrom& function) {
                                 calls_.push_back({function, path, place});
                                 return SpaceEntry(SampleFrom(std::to_string(calls_.size() - 1)));
                               },
                               [](const Value& constant) { return SpaceEntry(constant); },
                               [&](const List& items) { return list_without_draws(*items, path, place); },
                               [&](const Nested& space) { return space_without_draws(*space, path, place); }},
                      entry.data());
  }

  SpaceEntry list_without_draws(const Entries& items, const std::string& path, const std::string& place) {
    Entries settled;
    for (const SpaceEntry& item : items)
      settled.push_back(without_draws(item, path, join(place, std::to_string(settled.size()))));
    return SpaceEntry(std::move(settled));
  }

  // Goes by sorted keys, so that the first grid by path varies fastest.
  SpaceEntry space_without_draws(const Space& space, const std::string& path, const std::string& place) {
    std::map<std::string, std::size_t> by_key;
    for (std::size_t i = 0; i < space.size(); ++i) by_key[space[i].first] = i;
    Space settled = space;
    for (const auto& [key, i] : by_key)
      settled[i].second = without_draws(space[i].second, join(path, key), join(place, key));
    return settled;
  }

  // The combination is a number whose digits are the grids, the least significant one first. The part of the number
  // that selects within an option with grids of its own stays in `combination_` for them.
  SpaceEntry take_option(const GridSearch& grid, const std::string& path) {
    const std::int64_t all = combinations(SpaceEntry(grid), path, point_, kMostTrials);
    std::int64_t own = combination_ % all;
    combination_ /= all;
    for (const SpaceEntry& option : *grid.options) {
      const std::int64_t within = combinations(option, path, point_, kMostTrials);
      if (own < within) {
        combination_ = combination_ * within + own;
        return option;
      }
      own -= within;
    }
    return grid.options->back();  // not reached: own is below the sum of all options
  }

  base::RandomStream stream_at(const std::string& place) const {
    return {seed_, stream_, base::Purpose::search_space, base::checksum_of(place)};
  }

  // Replaces the first function of a settled entry by its result; returns false if there is none.
  bool call_first_function(SpaceEntry& entry, const Config& config) const {
    if (const auto* function = std::get_if<SampleFrom>(&entry.data())) {
      entry = call(calls_.at(std::stoul(function->function)), config);
      return true;
    }
    if (const auto* items = std::get_if<List>(&entry.data())) {
      Entries copy = **items;
      for (SpaceEntry& item : copy) {
        if (!call_first_function(item, config)) continue;
        entry = SpaceEntry(std::move(copy));
        return true;
      }
    }
    if (const auto* space = std::get_if<Nested>(&entry.data())) {
      Space copy = **space;
      for (auto& [key, item] : copy) {
        if (!call_first_function(item, config)) continue;
        entry = SpaceEntry(std::move(copy));
        return true;
      }
    }
    return false;
  }

  SpaceEntry call(const Call& call, const Config& config) const {
    base::RandomStream stream = stream_at(call.place);
    Random random(stream);
    try {
      return tune::call(call.function, config, random);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      const SampleFrom& function = call.function;
      const std::string name = function.host_function.is_set() ? function.function : "fn<" + function.function + ">";
      throw InvalidArgument(name + " of \"" + call.path + "\" threw: " + error.what());
    }
  }

  // Returns the value of a settled entry, without functions.
  static Value without_functions(const SpaceEntry& entry) {
    if (const auto* items = std::get_if<List>(&entry.data())) {
      cadre::List values;
      for (const SpaceEntry& item : **items) {
        if (!is_function(item)) values.push_back(without_functions(item));
      }
      return values;
    }
    if (const auto* space = std::get_if<Nested>(&entry.data())) {
      Dict entries;
      for (const auto& [key, item] : **space) {
        if (!is_function(item)) entries.emplace_back(key, without_functions(item));
      }
      return entries;
    }
    return std::get<Value>(entry.data());
  }

  static bool is_function(const SpaceEntry& entry) { return std::holds_alternative<SampleFrom>(entry.data()); }

  const Config& point_;
  std::uint64_t seed_;
  std::uint32_t stream_;
  std::int64_t combination_;
  std::vector<Call> calls_;
};

// ---- Tags

std::string plain_text(const Value& value);

std::string items_text(const auto& items, auto text_of) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + text_of(item);
  return text;
}

// Returns Python's str() of the value, except for quotes and escapes of text inside it, which tags do not show.
std::string plain_text(const Value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_list()) return "[" + items_text(value.items(), plain_text) + "]";
  if (value.is_dict())
    return "{" +
           items_text(value.dict(), [](const auto& entry) { return entry.first + ": " + plain_text(entry.second); }) +
           "}";
  std::string number;
  if (!value.is_double()) return to_json(value);
  base::append_python_float(number, value.get<double>());
  return number;
}

// Uses four decimals as long as they keep three significant digits.
std::string number_text(double value) {
  constexpr double smallest = 0.01;
  return value == 0 || !(std::abs(value) < smallest) ? fmt::format("{:.4f}", value) : fmt::format("{:.3g}", value);
}

// Replaces every run of other characters by one '_', and removes '_' at the ends.
std::string clean(std::string_view text) {
  std::string cleaned;
  bool in_run = false;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    if (plain || !in_run) cleaned += plain ? c : '_';
    in_run = !plain;
  }
  const auto begin = cleaned.find_first_not_of('_');
  if (begin == cleaned.npos) return {};
  return cleaned.substr(begin, cleaned.find_last_not_of('_') - begin + 1);
}

}  // namespace

std::int64_t count_combinations(const Space& space, const Config& point, std::int64_t limit) {
  return combinations(SpaceEntry(space), "", point, limit);
}

VariantGenerator::VariantGenerator(Space space, const TuneConfig& tune, VariantBegin begin,
                                   std::map<TrialIndex, Config> inserted)
    : space_(std::move(space)),
      seed_(tune.seed),
      constant_grid_search_(tune.constant_grid_search),
      begin_(begin),
      inserted_(std::move(inserted)),
      combinations_(count_combinations(space_, {}, kMostTrials)),
      size_(begin.trial) {
  const auto made = std::min(begin.sample, std::ssize(tune.points_to_evaluate));
  points_.assign(tune.points_to_evaluate.begin() + made, tune.points_to_evaluate.end());
  for (const Config& point : points_) ends_.push_back(size_ += count_combinations(space_, point, kMostTrials));
  const std::int64_t others = tune.num_samples - begin.sample - std::ssize(points_);
  size_ += std::max<std::int64_t>(0, others) * combinations_;
}

std::int64_t VariantGenerator::inserted_before(std::int64_t trial) const {
  return std::distance(inserted_.begin(), inserted_.lower_bound(static_cast<TrialIndex>(trial)));
}

std::int64_t VariantGenerator::variant(std::int64_t trial) const {
  // Does not count those before the beginning: they are among the trials that are made.
  return trial - std::max<std::int64_t>(0, inserted_before(trial) - inserted_before(begin_.trial));
}

std::int64_t VariantGenerator::size() const { return size_ + std::ssize(inserted_) - inserted_before(begin_.trial); }

VariantGenerator::Place VariantGenerator::place_of(std::int64_t variant) const {
  const auto point = static_cast<std::size_t>(std::ranges::upper_bound(ends_, variant) - ends_.begin());
  const std::int64_t within = variant - (point == 0 ? begin_.trial : ends_[point - 1]);
  const std::int64_t sample = begin_.sample + static_cast<std::int64_t>(point);
  if (point < points_.size()) return {point, sample, within};
  return {point, sample + within / combinations_, within % combinations_};
}

std::int64_t VariantGenerator::samples_of(std::int64_t trials) const {
  const std::int64_t variants = variant(trials);
  return variants <= begin_.trial ? begin_.sample : place_of(variants - 1).sample + 1;
}

Variant VariantGenerator::operator()(std::int64_t trial, const Config& suggestion) const {
  const auto inserted = inserted_.find(static_cast<TrialIndex>(trial));
  const bool is_inserted = inserted != inserted_.end();
  const Place place = is_inserted ? Place{} : place_of(variant(trial));
  const bool has_point = is_inserted || place.point < points_.size();
  const Config& given = is_inserted ? inserted->second : has_point ? points_[place.point] : suggestion;
  const std::int64_t of_sample = is_inserted ? kMostTrials + trial : place.sample;
  const auto stream = static_cast<std::uint32_t>(constant_grid_search_ ? of_sample : trial);
  Space space = space_;
  for (const auto& [path, value] : suggestion) add_missing(path, value, space);
  Variant made = Resolver(given, seed_, stream, place.combination).resolve(space);
  made.sampled = sampled_of(space_, has_point ? given : Config(), made.config.dict());
  return made;
}

Dict VariantGenerator::sampled(std::int64_t trial, const Config& config) const {
  if (const auto inserted = inserted_.find(static_cast<TrialIndex>(trial)); inserted != inserted_.end())
    return sampled_of(space_, inserted->second, config.dict());
  const std::size_t point = place_of(variant(trial)).point;
  return sampled_of(space_, point < points_.size() ? points_[point] : Config(), config.dict());
}

std::string format_variables(const Dict& sampled) {
  Dict sorted = sampled;
  // Sorts by path, part by part: a '/' comes before every other character.
  std::ranges::sort(sorted, {}, [](const auto& entry) {
    std::string parts = entry.first;
    std::ranges::replace(parts, '/', '\0');
    return parts;
  });
  std::string text;
  for (const auto& [path, value] : sorted) {
    const std::string key = path.substr(path.rfind('/') + 1);
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", clean(key),
                        value.is_double() ? number_text(value.get<double>()) : clean(plain_text(value)));
  }
  return text;
}

}  // namespace cadre::tune
