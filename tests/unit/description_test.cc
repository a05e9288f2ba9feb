#include "tune/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "base/json.h"
#include "control/differences.h"
#include "support/message_of.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using cadre::test_support::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matcher;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Parses a description as the store does: from JSON.
Description read_back(const Dict& description) {
  return parse_description(base::parse_json(base::to_json(description), "the JSON"), "the store");
}
Description read_back(const Description& description) {
  return read_back(describe(description.trainable, description.options));
}

template <class T, class Entry>
const T& as(const Entry& entry) {
  return std::get<T>(entry.second.data());
}
template <class T, class Entry>
const T& domain(const Entry& entry) {
  return std::get<T>(as<Domain>(entry));
}

// Returns options that all differ from their defaults.
Description everything() {
  PopulationBasedTraining pbt{.time_attr = "seconds",
                              .metric = "eval/loss",
                              .mode = Mode::min,
                              .perturbation_interval = 0.1,
                              .burn_in_period = 1e-320,
                              .hyperparam_mutations = {{"lr", loguniform(1e-5, 1)},
                                                       {"act", {"relu", 2, 2.0}},
                                                       {"model", {{"width", choice({1, 2})}}}},
                              .quantile_fraction = 0.5,
                              .resample_probability = 1.0 / 3,
                              .perturbation_factors = {1.1, 0.9},
                              .log_config = false,
                              .require_attrs = false,
                              .synch = true,
                              .synch_deadline = 2.5};
  return {with_resources(Trainable("train"), {.cpus = 0.5,
                                              .gpus = 2,
                                              .custom = {{"license", 1}, {"tpu", 0.25}},
                                              .accelerator_type = "H100",
                                              .labels = {{"zone", "!eu"}}}),
          {.param_space = {{"lr", uniform(-1.5, 1e300)},
                           {"model", {{"width", randint(-9, 9)}, {"act", choice({"relu", 1, 1.0})}}},
                           {"epochs", 5},
                           {"scale", loguniform(1e-4, 1)}},
           .tune_config = {.metric = "loss",
                           .mode = Mode::min,
                           .num_samples = 7,
                           .scheduler = std::move(pbt),
                           .max_concurrent_trials = 3,
                           .seed = std::numeric_limits<std::uint64_t>::max(),
                           .time_budget = Seconds(12.5)},
           .run_config = {
               .stop = any_of(
                   Stop{{"loss", at_least(-infinity)}, {"eval/accuracy", at_least(0.96)}, {"loss", at_most(infinity)}},
                   MaximumIterationStopper{7}, TrialPlateauStopper{"loss", 0.5, 2, 3, -1.5, Mode::min},
                   ExperimentPlateauStopper{"loss", 0.5, 3, Mode::max, 4}, TimeoutStopper{Seconds(0.5)},
                   FunctionStopper{"f"}),
               .checkpoint_config = {.num_to_keep = 4,
                                     .checkpoint_score_attribute = "",
                                     .checkpoint_score_order = Mode::min,
                                     .checkpoint_frequency = 5,
                                     .checkpoint_at_end = false},
               .failure_config =
                   {.max_failures = -1, .max_restore_failures = 2, .max_preemption_failures = 3, .fail_fast = true},
               .limits = {.time = Seconds(0.5), .time_between_reports = Seconds(1.5), .memory_bytes = 1ull << 63},
               .stop_grace_period = Seconds(0.1),
               .verbose = 0}}};
}

TEST(Description, EveryOptionIsReadBack) {
  const auto [trainable, options] = read_back(everything());
  EXPECT_EQ(trainable.name, "train");
  EXPECT_EQ(trainable.resources, everything().trainable.resources);
  const TuneConfig& tune = options.tune_config;
  EXPECT_EQ(tune.metric, "loss");
  EXPECT_EQ(tune.mode, Mode::min);
  EXPECT_EQ(tune.num_samples, 7);
  EXPECT_EQ(tune.max_concurrent_trials, 3);
  EXPECT_EQ(tune.time_budget, Seconds(12.5));
  EXPECT_EQ(options.run_config.checkpoint_config.checkpoint_frequency, 5);
  EXPECT_EQ(options.run_config.checkpoint_config.checkpoint_at_end, false);
  EXPECT_EQ(tune.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(options.run_config.stop, everything().options.run_config.stop);
  const CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  EXPECT_EQ(checkpoints.num_to_keep, 4);
  EXPECT_EQ(checkpoints.checkpoint_score_attribute, "");
  EXPECT_EQ(checkpoints.checkpoint_score_order, Mode::min);
  const FailureConfig& failures = options.run_config.failure_config;
  EXPECT_EQ(failures.max_failures, -1);
  EXPECT_EQ(failures.max_restore_failures, 2);
  EXPECT_EQ(failures.max_preemption_failures, 3);
  EXPECT_TRUE(failures.fail_fast);
  EXPECT_EQ(options.run_config.limits.time, Seconds(0.5));
  EXPECT_EQ(options.run_config.limits.time_between_reports, Seconds(1.5));
  EXPECT_EQ(options.run_config.limits.memory_bytes, 1ull << 63);
  EXPECT_EQ(options.run_config.stop_grace_period, Seconds(0.1));
  EXPECT_EQ(options.run_config.verbose, 0);
}

TEST(Description, ASearchSpaceIsReadBackInItsOrder) {
  const Space space = read_back(everything()).options.param_space;
  ASSERT_EQ(space.size(), 4u);
  EXPECT_EQ(space[0].first, "lr");
  EXPECT_EQ(domain<Uniform>(space[0]), (Uniform{-1.5, 1e300}));
  const Space& model = *as<std::shared_ptr<const Space>>(space[1]);
  EXPECT_EQ(model[0].first, "width");
  EXPECT_EQ(domain<RandInt>(model[0]), (RandInt{-9, 9}));
  EXPECT_EQ(Domain(domain<Choice>(model[1])), choice({"relu", 1, 1.0}));
  EXPECT_EQ(as<Value>(space[2]), Value(5));
  EXPECT_EQ(domain<LogUniform>(space[3]), (LogUniform{1e-4, 1}));
}

TEST(Description, PopulationBasedTrainingIsReadBack) {
  const auto pbt = read_back(everything()).options.tune_config.scheduler.get<PopulationBasedTraining>();
  EXPECT_EQ(pbt.time_attr, "seconds");
  EXPECT_EQ(pbt.metric, "eval/loss");
  EXPECT_EQ(pbt.mode, Mode::min);
  EXPECT_EQ(pbt.perturbation_interval, 0.1);
  EXPECT_EQ(pbt.burn_in_period, 1e-320);
  EXPECT_EQ(pbt.quantile_fraction, 0.5);
  EXPECT_EQ(pbt.resample_probability, 1.0 / 3);
  EXPECT_EQ(pbt.perturbation_factors, std::pair(1.1, 0.9));
  EXPECT_FALSE(pbt.log_config);
  EXPECT_FALSE(pbt.require_attrs);
  EXPECT_TRUE(pbt.synch);
  EXPECT_EQ(pbt.synch_deadline, 2.5);
  const Mutations& mutations = pbt.hyperparam_mutations;
  ASSERT_EQ(mutations.size(), 3u);
  EXPECT_EQ(domain<LogUniform>(mutations[0]), (LogUniform{1e-5, 1}));
  EXPECT_EQ(as<List>(mutations[1]), (List{"relu", 2, 2.0}));
  EXPECT_EQ(Domain(domain<Choice>(as<std::shared_ptr<const Mutations>>(mutations[2])->at(0))), choice({1, 2}));
}

TEST(Description, AReplayIsReadBackWithItsSchedule) {
  const PolicySchedule schedule{{{"lr", 0.1}, {"act", "relu"}}, {{5, {{"lr", 1e-320}}}, {-1, {}}}};
  for (const PopulationBasedTrainingReplay& replay :
       {PopulationBasedTrainingReplay{.policy_file = "~/a b/pbt_policy_00001.txt", .schedule = schedule},
        PopulationBasedTrainingReplay{.policy_file = "x"}}) {
    const Description stored = read_back({Trainable("train"), {.tune_config = {.scheduler = replay}}});
    const auto& again = stored.options.tune_config.scheduler.get<PopulationBasedTrainingReplay>();
    EXPECT_EQ(again.policy_file, replay.policy_file);
    EXPECT_EQ(again.schedule, replay.schedule);
  }
}

TEST(Description, ParametersAreReadBack) {
  const Config parameters{{"data", Reference{"object", "1"}}, {"scale", 0.1}, {"nested", {{"a", list(1, 2)}}}};
  const Dict description = describe(with_parameters(Trainable("train"), parameters), {});
  EXPECT_EQ(read_back(description).trainable.parameters, parameters);
  EXPECT_EQ(control::differences(description, describe(Trainable("train"), {})).at(0).path,
            "trainable/parameters/data");
}

TEST(Description, DefaultsAreReadBack) {
  const auto [trainable, options] = read_back({Trainable("train"), {}});
  EXPECT_EQ(trainable.resources, Resources{});
  EXPECT_TRUE(options.tune_config.scheduler.get_if<FIFO>() != nullptr);
  EXPECT_EQ(options.run_config.checkpoint_config.num_to_keep, std::nullopt);
  EXPECT_EQ(options.run_config.checkpoint_config.checkpoint_score_attribute, std::nullopt);
  EXPECT_EQ(options.run_config.verbose, 1);
}

TEST(Description, AConstantIsNeverTakenForSomethingElse) {
  for (const Value& constant : std::initializer_list<Value>{
           Value(), Dict{{"type", "uniform"}, {"lower", 0.0}, {"upper", 1.0}},
           Dict{{"type", "space"}, {"entries", Dict{}}}, Dict{{"type", "constant"}, {"value", 1}}, Dict{}, List{},
           list(1, 1.0, true, "1"), Reference{"dataset", "mnist"}, std::nan(""), -infinity, -0.0, 5e-324,
           std::numeric_limits<std::int64_t>::min(), "é\n\"\0"}) {
    const Space space = read_back({Trainable("train"), {.param_space = {{"c", constant}}}}).options.param_space;
    EXPECT_EQ(as<Value>(space.at(0)), constant) << to_json(constant);
    EXPECT_EQ(to_json(as<Value>(space.at(0))), to_json(constant));
  }
}

TEST(Description, NameAndPlaceAreNotPartOfIt) {
  Description moved = everything();
  moved.options.run_config.name = "other";
  moved.options.run_config.storage_path = "/elsewhere";
  EXPECT_EQ(describe(moved.trainable, moved.options), describe(everything().trainable, everything().options));
}

// ---- random ones

class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}

  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(bits_); }
  bool coin() { return below(2) == 0; }
  double number() {
    constexpr double special[] = {0, -0.0, 1, 0.1, infinity, -infinity, 5e-324, 1.7976931348623157e308};
    return coin() ? special[below(std::size(special))] : std::bit_cast<double>(bits_() & 0xbfff'ffff'ffff'ffffu);
  }
  std::int64_t integer() { return static_cast<std::int64_t>(bits_()); }
  std::string text() {
    constexpr const char* pieces[] = {"a", "lr", "\"", "\\", "\n", "é", "🙂", "type", "$", "{}"};
    std::string made;
    for (auto i = below(4); i > 0; --i) made += pieces[below(std::size(pieces))];
    return made;
  }
  std::string key() { return text() + std::to_string(next_key_++); }
  Mode mode() { return coin() ? Mode::min : Mode::max; }

  List values(int depth) {
    List made;
    for (auto i = below(4); i > 0; --i) made.push_back(value(depth - 1));
    return made;
  }
  Value value(int depth) {
    switch (below(depth > 0 ? 8 : 5)) {
      case 0:
        return {};
      case 1:
        return coin();
      case 2:
        return integer();
      case 3:
        return number();
      case 4:
        return text();
      case 5:
        return Reference{text(), text()};
      case 6:
        return values(depth);
      default:
        return Dict{{key(), value(depth - 1)}, {key(), value(depth - 1)}};
    }
  }
  Domain domain(int depth = 0) {
    switch (below(8)) {
      case 0:
        return Uniform{number(), number(), number()};
      case 1:
        return LogUniform{number(), number(), number()};
      case 2:
        return Normal{number(), number(), number()};
      case 3:
        return RandInt{integer(), integer(), integer()};
      case 4:
        return LogRandInt{integer(), integer(), integer()};
      case 5:
        return ordinal(values(2));
      default:
        return choice(entries(depth));
    }
  }
  Entries entries(int depth) {
    Entries made;
    for (auto i = below(4); i > 0; --i) made.push_back(entry(depth - 1));
    return made;
  }
  SpaceEntry entry(int depth) {
    switch (below(depth > 0 ? 6 : 3)) {
      case 0:
        return domain(depth);
      case 1:
        return value(2);
      case 2:
        return SampleFrom{text()};
      case 3:
        return grid_search(entries(depth));
      case 4:
        return SpaceEntry(entries(depth));
      default:
        return space(depth);
    }
  }
  Space space(int depth) {
    Space made;
    for (auto i = below(4); i > 0; --i) made.emplace_back(key(), entry(depth - 1));
    return made;
  }
  Mutations mutations(int depth) {
    Mutations made;
    for (auto i = below(4); i > 0; --i) {
      const auto kind = below(depth > 0 ? 4 : 3);
      made.emplace_back(key(), kind == 0   ? Mutation(domain())
                               : kind == 1 ? Mutation(values(2))
                               : kind == 2 ? Mutation(SampleFrom{text()})
                                           : Mutation(mutations(depth - 1)));
    }
    return made;
  }
  std::vector<Config> points() {
    std::vector<Config> made;
    for (auto i = below(3); i > 0; --i) made.push_back({{key(), value(2)}, {key(), value(2)}});
    return made;
  }
  PopulationBasedTrainingReplay replay() {
    PopulationBasedTrainingReplay made{.policy_file = text()};
    if (coin()) return made;
    made.schedule.emplace().initial_config = {{key(), value(2)}, {key(), value(2)}};
    for (auto i = below(4); i > 0; --i) made.schedule->changes.push_back({integer(), {{key(), value(2)}}});
    return made;
  }
  AnyScheduler scheduler() {
    if (below(4) == 0) return FIFO{};
    if (below(4) == 0) return replay();
    if (below(4) == 0) {
      return PB2{.time_attr = text(),
                 .metric = text(),
                 .mode = mode(),
                 .perturbation_interval = number(),
                 .hyperparam_bounds = mutations(3),
                 .custom_explore_fn = ExploreFunction(text()),
                 .synch = coin()};
    }
    if (below(4) == 0) {
      return MultipleFrequenciesPBT{.time_attr = text(),
                                    .metric = text(),
                                    .mode = mode(),
                                    .perturbation_interval = number(),
                                    .interval_factors = {integer(), integer(), integer()},
                                    .hyperparam_mutations = mutations(3),
                                    .perturbation_factors = {number(), number()},
                                    .synch = coin()};
    }
    return PopulationBasedTraining{text(),
                                   text(),
                                   mode(),
                                   number(),
                                   number(),
                                   mutations(3),
                                   ExploreFunction(text()),
                                   static_cast<Bounds>(below(3)),
                                   number(),
                                   number(),
                                   {number(), number()},
                                   coin(),
                                   coin(),
                                   coin(),
                                   number()};
  }
  Description description() {
    Description made{
        with_resources(Trainable(text()), Resources{number(), number(), {{key(), number()}, {key(), number()}}}),
        {.param_space = space(3),
         .tune_config = {text(),
                         mode(),
                         integer(),
                         RandomSearch{},
                         scheduler(),
                         integer(),
                         bits_(),
                         points(),
                         {{}, number(), coin()},
                         coin()},
         .run_config = {.stop = {{text(), {number(), mode()}}, {text(), {number(), mode()}}},
                        .checkpoint_config = {{}, {}, mode()},
                        .failure_config = {integer(), integer(), coin()},
                        .limits = {Seconds(number()), {}, bits_()},
                        .stop_grace_period = Seconds(number()),
                        .verbose = static_cast<int>(below(3))}}};
    if (coin()) made.options.run_config.checkpoint_config.num_to_keep = integer();
    if (coin()) made.options.run_config.checkpoint_config.checkpoint_score_attribute = text();
    return made;
  }

 private:
  std::mt19937_64 bits_;
  int next_key_ = 0;
};

TEST(Description, RandomOptionsAreReadBackToTheBit) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Description made = Random(seed).description();
    const Dict description = describe(made.trainable, made.options);
    const Description read = read_back(description);
    // Compares the JSON too, because -0.0 equals 0.0 as a value.
    EXPECT_EQ(base::to_json(describe(read.trainable, read.options)), base::to_json(description)) << "seed " << seed;
    EXPECT_EQ(describe(read.trainable, read.options), description) << "seed " << seed;
  }
}

// ---- damage

// Returns a description with one dictionary, at `path`, changed.
Value changed(const Value& value, const std::string& path, const std::function<void(Dict&)>& change) {
  Dict entries = value.dict();
  if (path.empty()) {
    change(entries);
    return entries;
  }
  const auto slash = path.find('/');
  for (auto& [key, entry] : entries) {
    if (key == path.substr(0, slash)) entry = changed(entry, slash == path.npos ? "" : path.substr(slash + 1), change);
  }
  return entries;
}

std::string fault_after(const std::string& path, const std::function<void(Dict&)>& change) {
  const Value intact = describe(everything().trainable, everything().options);
  return message_of<StorageError>([&] { parse_description(changed(intact, path, change), "the store of x"); });
}

// Paths of dictionaries whose keys are fields.
constexpr const char* structs[] = {"",
                                   "trainable",
                                   "trainable/resources",
                                   "run_config/failure_config",
                                   "run_config/limits",
                                   "param_space/lr",
                                   "param_space/epochs",
                                   "param_space/model",
                                   "param_space/model/entries/width",
                                   "param_space/model/entries/act",
                                   "param_space/scale",
                                   "tune_config",
                                   "tune_config/scheduler",
                                   "tune_config/scheduler/hyperparam_mutations/act",
                                   "tune_config/scheduler/hyperparam_mutations/model",
                                   "run_config",
                                   "run_config/checkpoint_config"};

Dict fields_at(const std::string& path) {
  Dict found;
  changed(describe(everything().trainable, everything().options), path, [&](Dict& entries) { found = entries; });
  return found;
}

TEST(Description, AMissingFieldHasItsDefault) {
  for (const std::string path : structs) {
    ASSERT_THAT(fields_at(path), Not(IsEmpty())) << path;
    for (const auto& [key, value] : fields_at(path)) {
      const std::string fault =
          fault_after(path, [&](Dict& entries) { std::erase_if(entries, [&](auto& e) { return e.first == key; }); });
      EXPECT_THAT(fault, key == "type" ? HasSubstr("it has no \"type\"") : HasSubstr("nothing was thrown"));
    }
  }
}

TEST(Description, AnUnknownFieldIsNamed) {
  for (const std::string path : structs) {
    const std::string name = path.empty() ? "gravity" : path + "/gravity";
    EXPECT_THAT(fault_after(path, [&](Dict& entries) { entries.emplace_back("gravity", 9.81); }),
                HasSubstr("the store of x: " + name + ": no such member is known"));
  }
}

TEST(Description, AFieldThatIsThereTwiceIsNamed) {
  for (const std::string path : structs) {
    EXPECT_THAT(fault_after(path, [&](Dict& entries) { entries.push_back(entries.front()); }),
                HasSubstr(fields_at(path).front().first + ": no such member is known"));
  }
}

TEST(Description, AFieldOfTheWrongTypeIsNamed) {
  const Value wrong = Reference{"of", "no field's type"};
  for (const std::string path : structs) {
    for (const auto& [key, value] : fields_at(path)) {
      if (path == "param_space/epochs" && key == "value") continue;  // a constant may have any value
      const std::string name = path.empty() ? key : path + "/" + key;
      const auto spoil = [&](Dict& entries) {
        std::ranges::find(entries, key, &Dict::value_type::first)->second = wrong;
      };
      EXPECT_THAT(fault_after(path, spoil), HasSubstr("the store of x: " + name + ": "));
    }
  }
}

// A program that shows experiments need not know the schedulers of all others.
TEST(Description, OptionsOfAnUnknownSchedulerAreReadBack) {
  const Value options{{"type", "OfAnotherProgram"}, {"every", 5}};
  const TunerOptions read = parse_description(Dict{{"tune_config", Dict{{"scheduler", options}}}}, "the store").options;
  EXPECT_EQ(read.tune_config.scheduler.name(), "OfAnotherProgram");
  EXPECT_EQ(*find_entry(find_entry(describe({}, read), "tune_config")->dict(), "scheduler"), options);
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { check_options({}, read); }),
      HasSubstr(
          "scheduler (OfAnotherProgram) type: this program has none of that name; it has: ASHAScheduler, FIFO, "));
}

TEST(Description, AnImpossibleValueIsNamed) {
  const auto fault = [](const std::string& path, const std::string& key, const Value& value) {
    return fault_after(
        path, [&](Dict& entries) { std::ranges::find(entries, key, &Dict::value_type::first)->second = value; });
  };
  EXPECT_THAT(fault("tune_config", "mode", "most"), HasSubstr("tune_config/mode: \"most\" is none of min, max"));
  for (const char* seed : {"", "-1", "1x", "18446744073709551616"})
    EXPECT_THAT(fault("tune_config", "seed", seed), HasSubstr("tune_config/seed")) << seed;
  EXPECT_THAT(fault("tune_config", "scheduler", Value()), HasSubstr("tune_config/scheduler: null is no dictionary"));
  EXPECT_THAT(fault("tune_config/scheduler", "perturbation_factors", list(1.5)), HasSubstr("[1.5] has not 2 parts"));
  EXPECT_THAT(fault("param_space/lr", "type", "values"), HasSubstr("param_space/lr: the type \"values\" is unknown"));
  EXPECT_THAT(fault("run_config", "verbose", std::int64_t{1} << 40), HasSubstr("run_config/verbose"));
  EXPECT_THAT(message_of<StorageError>([] { parse_description(list(1), "the store of x"); }),
              HasSubstr("the store of x: [1] is no dictionary"));
}

// ---- differences

template <class Change>
std::vector<std::string> differences_after(Change change) {
  Description other = everything();
  change(other.options, other.options.tune_config.scheduler.get<PopulationBasedTraining>());
  std::vector<std::string> lines;
  for (const auto& [path, before, now] : control::differences(describe(everything().trainable, everything().options),
                                                              describe(other.trainable, other.options)))
    lines.push_back(path + ": " + before + " -> " + now);
  return lines;
}

TEST(Description, DifferencesAreListedByKey) {
  EXPECT_THAT(differences_after([](auto&, auto&) {}), IsEmpty());
  EXPECT_THAT(
      differences_after([](auto& options, auto& pbt) {
        options.tune_config.num_samples = 8;
        pbt.perturbation_interval = 6;
      }),
      ElementsAre("tune_config/num_samples: 7 -> 8", "tune_config/scheduler/perturbation_interval: 0.1 -> 6.0"));
}

TEST(Description, ADifferentSearchSpaceIsShownWhereItDiffers) {
  const auto after = [](Space space) {
    return differences_after([&](auto& options, auto&) {
      space.insert(space.end(), options.param_space.begin() + 1, options.param_space.end());
      options.param_space = std::move(space);
    });
  };
  EXPECT_THAT(after({{"lr", uniform(-1.5, 2)}}), ElementsAre("param_space/lr/upper: 1e+300 -> 2.0"));
  EXPECT_THAT(after({{"lr", 5}}), ElementsAre(AllOf(HasSubstr("param_space/lr: {\"type\": \"uniform\", "),
                                                    HasSubstr(" -> {\"type\": \"constant\", \"value\": 5}"))));
  EXPECT_THAT(after({}), ElementsAre(AllOf(HasSubstr("param_space/lr: {"), testing::EndsWith(" -> "))));
  EXPECT_THAT(after({{"lr", uniform(-1.5, 1e300)}, {"wd", 0}}), ElementsAre(HasSubstr("param_space/wd:  -> {")));
}

// The form that experiments have been stored in since before stoppers were an open interface.
TEST(Description, StoppersOfEarlierVersionsAreReadBack) {
  const std::string stored =
      R"({"thresholds": {"loss": {"at_most": 0.5}}, "stoppers": [)"
      R"({"type": "MaximumIterationStopper", "max_iter": 7}, )"
      R"({"type": "TrialPlateauStopper", "metric": "loss", "std": 0.5, "num_results": 2, )"
      R"("grace_period": 3, "metric_threshold": -1.5, "mode": "min"}, )"
      R"({"type": "ExperimentPlateauStopper", "metric": "loss", "std": 0.5, "top": 3, )"
      R"("mode": "max", "patience": 4}, )"
      R"({"type": "TimeoutStopper", "timeout": 0.5}, {"type": "FunctionStopper", "function": "f"}]})";
  const Value value = base::parse_json(stored, "the JSON");
  const TunerOptions options = read_back(Dict{{"run_config", Dict{{"stop", value}}}}).options;
  const Stop& stop = options.run_config.stop;
  EXPECT_EQ(stop, any_of(Stop{{"loss", at_most(0.5)}}, MaximumIterationStopper{7},
                         TrialPlateauStopper{"loss", 0.5, 2, 3, -1.5, Mode::min},
                         ExperimentPlateauStopper{"loss", 0.5, 3, Mode::max, 4}, TimeoutStopper{Seconds(0.5)},
                         FunctionStopper{"f"}));
  EXPECT_NE(stop, any_of(Stop{{"loss", at_most(0.5)}}, MaximumIterationStopper{7}));
  EXPECT_EQ(to_json(Config(describe({}, options)).at("run_config/stop")), stored);
}

TEST(Description, ADifferentOrderIsADifference) {
  EXPECT_THAT(
      differences_after([](auto& options, auto&) { std::swap(options.param_space[0], options.param_space[1]); }),
      ElementsAre(testing::StartsWith("param_space, its order: [\"lr\", \"model\", ")));
  EXPECT_THAT(differences_after([](auto& options, auto&) { options.run_config.stop.thresholds.pop_back(); }),
              ElementsAre(testing::StartsWith("run_config/stop/thresholds, its order: ")));
}

TEST(Description, HowMuchIsSaidIsNoDifference) {
  EXPECT_THAT(differences_after([](auto& options, auto&) { options.run_config.verbose = 1; }), IsEmpty());
}

}  // namespace
}  // namespace cadre::tune
