#include "tune/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/json.h"
#include "base/name.h"
#include "base/overload.h"
#include "run/entries.h"
#include "tune/console/display_text.h"
#include "tune/description.h"
#include "tune/domain.h"
#include "tune/functions.h"
#include "tune/schedulers/policy_file.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace {

constexpr std::int64_t kMostTrials = std::int64_t{1} << 31;

const std::string kReplay = "scheduler (PopulationBasedTrainingReplay) ";

// Collects what is wrong, each with the path of the option.
class Faults {
 public:
  // Names come from anywhere: what a terminal would act on is spelled out.
  void add(const std::string& option, const std::string& what) {
    text_ += "\n  " + console::printable(option + ": " + what, console::Encoding::utf8);
  }
  void unless(bool good, const std::string& option, const std::string& what) {
    if (!good) add(option, what);
  }
  void throw_if_any(const std::string& subject) const {
    if (!text_.empty()) throw InvalidArgument(subject + " cannot be run:" + text_);
  }

 private:
  std::string text_;
};

// ---- Search space

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

void check_domain(const Domain& domain, const std::string& name, Faults& faults) {
  const std::string fault = fault_of(domain);
  if (!fault.empty()) faults.add(name, to_string(domain) + " cannot be drawn from: " + fault);
}

void check_function(const SampleFrom& function, const std::string& name, Faults& faults) {
  faults.unless(sample_functions().find(function.function) != nullptr, name,
                "this program has no function \"" + function.function + "\"; make it with tune::sample_from<f>()");
  const auto& twice = sample_functions().duplicates();
  faults.unless(std::ranges::find(twice, function.function) == twice.end(), name,
                "two functions of this program are called \"" + function.function + "\"");
}

// `drawn`: inside the options of a choice, whose trials are not known before it is drawn.
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

void check_space(const Space& space, Faults& faults) {
  check_keys(space, "param_space ", faults);
  for (const auto& [key, entry] : space) check_entry(entry, "param_space \"" + key + "\"", false, faults);
}

std::string keys_of(const Space& space) {
  return space.empty() ? "none" : fmt::format("{}", fmt::join(std::views::keys(space), ", "));
}

const SpaceEntry* find(const Space& space, const std::string& key) {
  const auto entry = std::ranges::find(space, key, &Space::value_type::first);
  return entry == space.end() ? nullptr : &entry->second;
}

// ---- Points to evaluate

const SpaceEntry* find_path(const Space& space, const std::string& path) {
  const auto slash = path.find('/');
  const SpaceEntry* entry = find(space, path.substr(0, slash));
  if (entry == nullptr || slash == path.npos) return entry;
  const auto* nested = std::get_if<Nested>(&entry->data());
  return nested == nullptr ? nullptr : find_path(**nested, path.substr(slash + 1));
}

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

void check_trials(const TunerOptions& options, Faults& faults) {
  const TuneConfig& tune = options.tune_config;
  for (std::size_t i = 0; i < tune.points_to_evaluate.size(); ++i)
    check_point(tune.points_to_evaluate[i].dict(), options.param_space, fmt::format("points_to_evaluate[{}]", i),
                faults);
  const std::int64_t trials = VariantGenerator(options.param_space, tune).size();
  faults.unless(trials <= kMostTrials, "param_space",
                "its grids and num_samples make more than 2^31 trials; at most so many are possible");
}

// ---- What the training function takes

// Of a function that takes a struct.
void check_config_type(const Trainable& trainable, const TunerOptions& options, Faults& faults) {
  const detail::ConfigType* type = config_types().find(trainable.name);
  if (type == nullptr || type->check == nullptr) return;
  for (const auto& [key, entry] : options.param_space) {
    faults.unless(std::ranges::find(type->members, key) != type->members.end(), "param_space \"" + key + "\"",
                  fmt::format("the struct that {} takes has no such member; it has: {}", trainable.name,
                              fmt::join(type->members, ", ")));
  }
  const Variant first = VariantGenerator(options.param_space, options.tune_config)(0);
  if (!first.fault.empty()) return;  // the trial will say so
  const auto check = [&](const Config& config, const std::string& option, const std::string& whose) {
    try {
      type->check(config);
    } catch (const Error& error) {
      faults.add(option, fmt::format("{} cannot take {} config: {}", trainable.name, whose, error.what()));
    }
  };
  check(first.config, "param_space", "the first trial's");
  const auto* replay = std::get_if<PopulationBasedTrainingReplay>(&options.tune_config.scheduler);
  if (replay == nullptr) return;
  for (const PolicySchedule::Change& change : replay->schedule->changes)
    check(changed_config(first.config, *replay->schedule, change), kReplay + "schedule",
          fmt::format("iteration {}'s", change.change_at));
}

// ---- Population Based Training

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

// The spaces in which the key of a nested mutation may be: the nested one, or, in a conditional space, several.
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

void check_scheduler(const FIFO&, const TunerOptions&, Faults&) {}

void check_scheduler(const PopulationBasedTraining& pbt, const TunerOptions& options, Faults& faults) {
  const std::string name = "scheduler (PopulationBasedTraining) ";
  faults.unless(!pbt.time_attr.empty(), name + "time_attr",
                "say what perturbation_interval counts, such as \"training_iteration\" or \"time_total_s\"");
  faults.unless(!pbt.metric.empty(), name + "metric",
                "name the metric that trials are compared by, here or in TuneConfig");
  const std::string& outer = options.tune_config.metric;
  faults.unless(pbt.metric == outer || outer.empty() || pbt.metric.empty(), name + "metric",
                fmt::format("it is \"{}\", but the TuneConfig's metric is \"{}\"", pbt.metric, outer));
  faults.unless(std::isfinite(pbt.perturbation_interval) && pbt.perturbation_interval > 0,
                name + "perturbation_interval",
                fmt::format("it is {}; it must be above 0, in units of time_attr", pbt.perturbation_interval));
  faults.unless(std::isfinite(pbt.burn_in_period) && pbt.burn_in_period >= 0, name + "burn_in_period",
                fmt::format("it is {}; it must be 0 or more", pbt.burn_in_period));
  faults.unless(pbt.quantile_fraction >= 0 && pbt.quantile_fraction <= 0.5, name + "quantile_fraction",
                fmt::format("it is {}; it must be from 0 to 0.5", pbt.quantile_fraction));
  faults.unless(pbt.resample_probability >= 0 && pbt.resample_probability <= 1, name + "resample_probability",
                fmt::format("it is {}; it must be from 0 to 1", pbt.resample_probability));
  const auto& [first, second] = pbt.perturbation_factors;
  faults.unless(std::isfinite(first) && std::isfinite(second) && first > 0 && second > 0, name + "perturbation_factors",
                fmt::format("they are {} and {}; both must be above 0", first, second));
  faults.unless(std::isfinite(pbt.synch_deadline) && pbt.synch_deadline >= 0, name + "synch_deadline",
                fmt::format("it is {}; it must be 0 (none) or more seconds", pbt.synch_deadline));
  faults.unless(pbt.synch || pbt.synch_deadline == 0, name + "synch_deadline", "it needs synch = true");
  const std::string& custom = pbt.custom_explore_fn.function;
  faults.unless(!pbt.hyperparam_mutations.empty() || !custom.empty(), name + "hyperparam_mutations",
                "name at least one key to mutate, or set custom_explore_fn");
  check_mutations(pbt.hyperparam_mutations, {&options.param_space}, name + "hyperparam_mutations ", faults);
  faults.unless(custom.empty() || explore_functions().find(custom) != nullptr, name + "custom_explore_fn",
                "this program has no function \"" + custom + "\"; make it with tune::explore_function<f>()");
  const auto& twice = explore_functions().duplicates();
  faults.unless(std::ranges::find(twice, custom) == twice.end(), name + "custom_explore_fn",
                "two functions of this program are called \"" + custom + "\"");
}

// ---- Replays

void check_scheduler(const PopulationBasedTrainingReplay& replay, const TunerOptions& options, Faults& faults) {
  if (!replay.schedule)
    return faults.add(kReplay + "policy_file", "name the file to replay, pbt_policy_<trial id>.txt of an experiment");
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples == 1, "num_samples",
                fmt::format("it is {}; a replay trains 1 trial", tune.num_samples));
  faults.unless(count_combinations(options.param_space, {}, 2) < 2, "param_space",
                "it has grids, and a replay trains 1 trial");
  faults.unless(tune.points_to_evaluate.empty(), "points_to_evaluate",
                "a replay begins with the first config of its schedule");
  faults.unless(!replay.schedule->initial_config.empty() || !options.param_space.empty(), kReplay + "policy_file",
                "it is empty, and so is param_space: there is no config to train with");
}

// The keys of param_space whose values are the schedule's.
std::vector<std::string> overruled_keys(const Space& space, const Config& initial) {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : space) {
    const Value* value = initial.find(key);
    const auto* constant = std::get_if<Value>(&entry.data());
    if (value != nullptr && (constant == nullptr || *constant != *value)) keys.push_back(key);
  }
  return keys;
}

void read_schedule(PopulationBasedTrainingReplay& replay, const Space& space, std::vector<std::string>& notes) {
  if (replay.schedule || replay.policy_file.empty()) return;
  try {
    replay.schedule = read_policy_file(replay.policy_file);
  } catch (const InvalidArgument& error) {
    Faults faults;
    faults.add(kReplay + "policy_file", error.what());
    faults.throw_if_any("the experiment");
  }
  const std::vector<std::string> keys = overruled_keys(space, replay.schedule->initial_config);
  if (!keys.empty())
    notes.push_back(fmt::format("param_space {}: what is replayed has values of its own, which count instead",
                                fmt::join(keys, ", ")));
}

// ---- Everything else

void check_resources(const Resources& resources, Faults& faults) {
  const auto check = [&](const std::string& name, double amount) {
    faults.unless(std::isfinite(amount) && amount >= 0, "resources " + name,
                  fmt::format("the amount {} must be 0 or more", amount));
  };
  check("cpus", resources.cpus);
  check("gpus", resources.gpus);
  faults.unless(resources.gpus <= 1 || resources.gpus == std::floor(resources.gpus), "resources gpus",
                fmt::format("it is {:g}; a trial has a share of one GPU, or whole ones", resources.gpus));
  for (const auto& [name, amount] : resources.custom) check("\"" + name + "\"", amount);
  const bool any = resources.cpus > 0 || resources.gpus > 0 ||
                   std::ranges::any_of(resources.custom, [](const auto& entry) { return entry.second > 0; });
  faults.unless(any, "resources", "a trial needs some amount of some resource");
}

void check_failure_config(const FailureConfig& failure, Faults& faults) {
  faults.unless(failure.max_failures >= -1, "failure_config max_failures",
                fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", failure.max_failures));
  faults.unless(failure.max_restore_failures >= 0, "failure_config max_restore_failures",
                fmt::format("it is {}; it must be 0 or more", failure.max_restore_failures));
  faults.unless(!failure.fail_fast || failure.max_failures == 0, "failure_config fail_fast",
                "the first failure ends the experiment, so max_failures must be 0");
}

bool is_time(Seconds time) { return std::isfinite(time.count()) && time.count() >= 0; }

void check_limits(const TrialLimits& limits, Faults& faults) {
  const auto check = [&](const std::string& name, const std::optional<Seconds>& limit) {
    const bool good = !limit || (is_time(*limit) && limit->count() > 0);
    faults.unless(good, "limits " + name,
                  fmt::format("it is {:g} s; it must be above 0", limit.value_or(Seconds()).count()));
  };
  check("time", limits.time);
  check("time_between_reports", limits.time_between_reports);
  faults.unless(limits.memory_bytes != 0, "limits memory_bytes", "it is 0; a worker needs some memory");
}

void check_run_config(const RunConfig& run, Faults& faults) {
  if (!run.name.empty()) {
    const std::string fault = base::fault_of_file_name(run.name);
    if (!fault.empty()) faults.add("name", "\"" + run.name + "\" cannot name a directory: " + fault);
  }
  for (const auto& [metric, threshold] : run.stop) {
    faults.unless(!metric.empty(), "stop", "a criterion has no metric");
    faults.unless(!std::isnan(threshold), "stop \"" + metric + "\"", "the threshold is NaN and is never reached");
  }
  check_failure_config(run.failure_config, faults);
  check_limits(run.limits, faults);
  faults.unless(is_time(run.stop_grace_period), "stop_grace_period",
                fmt::format("it is {:g} s; it must be 0 or more", run.stop_grace_period.count()));
  faults.unless(run.verbose >= 0 && run.verbose <= 2, "verbose",
                fmt::format("it is {}; it must be 0, 1 or 2", run.verbose));
  const auto& keep = run.checkpoint_config.num_to_keep;
  faults.unless(!keep || *keep >= 1, "checkpoint_config num_to_keep",
                fmt::format("it is {}; keep at least 1 checkpoint, or leave it out to keep all", keep.value_or(0)));
}

// ---- What is stored

// Whatever begins can be continued: it reads back from its store as it is.
void check_description(const Dict& description, Faults& faults) {
  try {
    const Value stored = base::parse_json(base::to_json(description), "the options as JSON");
    for (const Difference& difference : differences(description, stored.dict())) {
      faults.add(difference.path,
                 "it would not be read back from the store as it is: text must be UTF-8, and the key \"$reference\" is "
                 "reserved");
    }
  } catch (const StorageError& error) {
    faults.add("options", std::string("they would not be read back from the store: ") + error.what());
  }
}

}  // namespace

namespace {

// ---- Bounds in order

class BoundsSorter {
 public:
  explicit BoundsSorter(std::vector<std::string>& notes) : notes_(notes) {}

  SpaceEntry sorted(const SpaceEntry& entry, const std::string& name) {
    return std::visit(
        base::Overload{[&](const Domain& domain) { return SpaceEntry(sorted(domain, name)); },
                       [&](const GridSearch& grid) { return SpaceEntry(GridSearch{sorted(*grid.options, name)}); },
                       [&](const Items& items) { return SpaceEntry(Entries(*sorted(*items, name))); },
                       [&](const Nested& space) { return SpaceEntry(sorted(*space, name + " > ")); },
                       [](const auto& other) { return SpaceEntry(other); }},
        entry.data());
  }
  Space sorted(const Space& space, const std::string& path) {
    Space result;
    for (const auto& [key, entry] : space) result.emplace_back(key, sorted(entry, path + "\"" + key + "\""));
    return result;
  }
  Mutations sorted(const Mutations& mutations, const std::string& path) {
    Mutations result;
    for (const auto& [key, mutation] : mutations) {
      const std::string name = path + "\"" + key + "\"";
      const auto* domain = std::get_if<Domain>(&mutation.data());
      const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&mutation.data());
      result.emplace_back(key, domain   ? Mutation(sorted(*domain, name))
                               : nested ? Mutation(sorted(**nested, name + " > "))
                                        : mutation);
    }
    return result;
  }

 private:
  Domain sorted(Domain domain, const std::string& name) {
    if (const auto* choice = std::get_if<Choice>(&domain)) return Choice{sorted(*choice->options, name)};
    const std::string given = to_string(domain);
    if (put_bounds_in_order(domain))
      notes_.push_back(
          fmt::format("{}: {} has its bounds in the wrong order; taken as {}", name, given, to_string(domain)));
    return domain;
  }
  Items sorted(const Entries& entries, const std::string& name) {
    Entries result;
    for (const SpaceEntry& entry : entries) result.push_back(sorted(entry, name));
    return std::make_shared<const Entries>(std::move(result));
  }

  std::vector<std::string>& notes_;
};

}  // namespace

TunerOptions resolve(TunerOptions options, std::vector<std::string>& notes) {
  TuneConfig& tune = options.tune_config;
  BoundsSorter sorter(notes);
  options.param_space = sorter.sorted(options.param_space, "param_space ");
  if (auto* pbt = std::get_if<PopulationBasedTraining>(&tune.scheduler)) {
    pbt->hyperparam_mutations = sorter.sorted(pbt->hyperparam_mutations, "hyperparam_mutations ");
    if (pbt->metric.empty()) {
      pbt->metric = tune.metric;
      pbt->mode = tune.mode;
    } else if (tune.metric.empty()) {
      tune.metric = pbt->metric;
      tune.mode = pbt->mode;
    }
  }
  if (auto* replay = std::get_if<PopulationBasedTrainingReplay>(&tune.scheduler))
    read_schedule(*replay, options.param_space, notes);
  return options;
}

void check_options(const Trainable& trainable, const TunerOptions& options) {
  Faults faults;
  faults.unless(run::find_entry(trainable.name) != nullptr, "trainable",
                "\"" + trainable.name + "\" is not registered; make it with tune::trainable<function>()");
  check_resources(trainable.resources, faults);
  check_space(options.param_space, faults);
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples >= 1, "num_samples",
                fmt::format("it is {}; at least 1 trial is needed", tune.num_samples));
  faults.unless(tune.num_samples <= kMostTrials, "num_samples", "at most 2^31 trials are possible");
  faults.unless(tune.max_concurrent_trials >= 0, "max_concurrent_trials",
                fmt::format("it is {}; it must be 0 (no limit) or more", tune.max_concurrent_trials));
  const Parking& parking = tune.parking;
  faults.unless(parking.max_workers.value_or(0) >= 0, "parking max_workers",
                fmt::format("it is {}; it must be 0 or more", parking.max_workers.value_or(0)));
  faults.unless(parking.min_free_memory >= 0 && parking.min_free_memory <= 1, "parking min_free_memory",
                fmt::format("it is {:g}; it must be from 0 to 1", parking.min_free_memory));
  std::visit([&](const auto& scheduler) { check_scheduler(scheduler, options, faults); }, tune.scheduler);
  check_run_config(options.run_config, faults);
  check_description(describe(trainable, options), faults);
  faults.throw_if_any("the experiment");
  // What follows draws from the space, which must be sound for it.
  check_trials(options, faults);
  faults.throw_if_any("the experiment");
  check_config_type(trainable, options, faults);
  faults.throw_if_any("the experiment");
}

}  // namespace cadre::tune
