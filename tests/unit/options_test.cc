#include "tune/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::tune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void train_for_options(const Config&) {}
void train_with_parameters(const Config&, const Config&) {}

PopulationBasedTraining good_pbt() {
  return {.time_attr = "training_iteration",
          .metric = maximize("accuracy"),
          .perturbation_interval = 5,
          .hyperparam_mutations = {{"lr", uniform(0, 1)}}};
}

TunerOptions good_options() {
  return {.param_space = {{"lr", uniform(0, 1)}, {"model", {{"width", randint(1, 9)}}}},
          .tune_config = {.num_samples = 4, .scheduler = good_pbt()},
          .run_config = {.name = "good", .stop = {{"accuracy", at_least(0.9)}}}};
}

// Returns the error message for the options after a change.
template <class Change>
std::string fault_after(Change change) {
  TunerOptions options = good_options();
  auto& pbt = options.tune_config.scheduler.get<PopulationBasedTraining>();
  change(options, pbt);
  try {
    std::vector<std::string> notes;
    check_options(fn<train_for_options>, resolve(fn<train_for_options>, options, notes));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, GoodOnesPass) {
  EXPECT_EQ(fault_after([](auto&, auto&) {}), "");
}

TEST(Options, VerboseIsFromZeroToTwo) {
  EXPECT_THAT(fault_after([](auto& options, auto&) { options.run_config.verbose = 3; }),
              HasSubstr("verbose: it is 3; it must be 0, 1 or 2"));
  EXPECT_THAT(fault_after([](auto& options, auto&) { options.run_config.verbose = -1; }), HasSubstr("verbose"));
  EXPECT_EQ(fault_after([](auto& options, auto&) { options.run_config.verbose = 2; }), "");
}

TEST(Options, ABadDomainIsNamedWithItsKey) {
  const std::string fault = fault_after([](auto& options, auto&) {
    options.param_space = {{"lr", uniform(1, 1)}, {"model", {{"width", randint(4, 4)}}}, {"act", choice(List{})}};
  });
  EXPECT_THAT(fault, HasSubstr("\"lr\": uniform(1.0, 1.0)"));
  EXPECT_THAT(fault, HasSubstr("\"model\" > \"width\": randint(4, 4)"));
  EXPECT_THAT(fault, HasSubstr("\"act\": choice([])"));
}

TEST(Options, ReversedBoundsAreSwappedAndSaid) {
  TunerOptions options = good_options();
  options.param_space = {{"lr", uniform(1, 0)},
                         {"model", {{"width", choice({randint(9, 1), 3})}, {"depth", grid_search({qrandn(0, 1, 2)})}}}};
  options.tune_config.scheduler.get<PopulationBasedTraining>().hyperparam_mutations = {{"lr", loguniform(1, 0.1)}};
  std::vector<std::string> notes;
  const TunerOptions resolved = resolve({}, options, notes);
  EXPECT_THAT(notes, ::testing::ElementsAre(
                         HasSubstr("param_space \"lr\": uniform(1.0, 0.0) has its bounds in the wrong order; taken as "
                                   "uniform(0.0, 1.0)"),
                         HasSubstr("param_space \"model\" > \"width\": randint(9, 1)"),
                         HasSubstr("hyperparam_mutations \"lr\": loguniform(1.0, 0.1)")));
  EXPECT_EQ(std::get<Domain>(resolved.param_space[0].second.data()), uniform(0, 1));
  check_options(fn<train_for_options>, resolved);
}

TEST(Options, GridsInsideAChoiceAndTooManyTrialsAreRefused) {
  EXPECT_THAT(fault_after([](auto& options, auto&) {
                options.param_space = {{"lr", 1}, {"model", {{"width", choice({grid_search({1, 2}), 3})}}}};
              }),
              HasSubstr("\"model\" > \"width\": a grid inside a choice"));
  EXPECT_THAT(fault_after([](auto& options, auto&) { options.param_space.emplace_back("empty", grid_search(List{})); }),
              HasSubstr("\"empty\": the grid has no options"));
  EXPECT_THAT(fault_after([](auto& options, auto&) {
                for (const char* key : {"a", "b", "c"})
                  options.param_space.emplace_back(key, grid_search(List(2000, Value(1))));
              }),
              HasSubstr("more than 2^31 trials"));
}

TEST(Options, APointToEvaluateMustLieInTheSpace) {
  const auto fault = [](const Config& point) {
    return fault_after([&](auto& options, auto&) { options.tune_config.points_to_evaluate = {{}, point}; });
  };
  EXPECT_EQ(fault({{"lr", 1}, {"model", {{"width", 8}}}}), "");
  EXPECT_EQ(fault({{"model/width", 1}}), "");
  EXPECT_THAT(fault({{"lr", 1.5}}), HasSubstr("points_to_evaluate[1] \"lr\": 1.5 is not in uniform(0.0, 1.0)"));
  EXPECT_THAT(fault({{"model", {{"width", 9}}}}), HasSubstr("\"model\" > \"width\": 9 is not in randint(1, 9)"));
  EXPECT_THAT(fault({{"model/width", 2.5}}), HasSubstr("2.5 is not in randint(1, 9)"));
  EXPECT_THAT(fault({{"model", 3}}), HasSubstr("3 is not in {\"width\": randint(1, 9)}"));
  EXPECT_THAT(fault({{"momentum", 3}}), HasSubstr("no such key; it has: lr, model"));
}

struct Hyperparameters {
  double lr = 0.1;
  std::int64_t width = 3;
};
void train_with_struct(const Hyperparameters&) {}

TEST(Options, AStructMustHaveTheKeysOfTheSpaceAndItsTypes) {
  const auto fault = [](const Space& space) {
    try {
      check_options(fn<train_with_struct>, {.param_space = space});
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault({field<&Hyperparameters::lr>(uniform(0, 1)), field<&Hyperparameters::width>(8)}), "");
  EXPECT_EQ(fault({{"lr", 1}}), "");
  EXPECT_THAT(fault({{"learning_rate", 1}}),
              HasSubstr("\"learning_rate\": the struct that train_with_struct takes has no such member; it has: lr, "
                        "width"));
  EXPECT_THAT(fault({{"width", uniform(0, 1)}}), HasSubstr("cannot take the first trial's config: key \"width\""));
}

TEST(Options, KeysMustBeUniqueAndPlain) {
  const std::string fault =
      fault_after([](auto& options, auto&) { options.param_space = {{"lr", 1}, {"lr", 2}, {"a/b", 3}, {"", 4}}; });
  EXPECT_THAT(fault, HasSubstr("\"lr\": the key is there twice"));
  EXPECT_THAT(fault, HasSubstr("\"a/b\""));
  EXPECT_THAT(fault, HasSubstr("\"\""));
}

TEST(Options, AnUnknownMutationKeyIsNamedWithThoseThatExist) {
  const std::string fault = fault_after([](auto&, auto& pbt) { pbt.hyperparam_mutations = {{"lrr", uniform(0, 1)}}; });
  EXPECT_THAT(fault, HasSubstr("\"lrr\": param_space has no such key; it has: lr, model"));
}

TEST(Options, MutationsMustFitTheShapeOfTheSpace) {
  EXPECT_THAT(fault_after([](auto&, auto& pbt) { pbt.hyperparam_mutations = {{"model", {1, 2}}}; }),
              HasSubstr("mutate its keys"));
  EXPECT_THAT(fault_after([](auto&, auto& pbt) { pbt.hyperparam_mutations = {{"lr", {{"x", {1, 2}}}}}; }),
              HasSubstr("nested search space"));
  EXPECT_THAT(fault_after([](auto&, auto& pbt) { pbt.hyperparam_mutations = {{"model", {{"height", {1, 2}}}}}; }),
              HasSubstr("it has: width"));
}

TEST(Options, MutationsMayReachIntoAConditionalSpace) {
  const auto fault = [](const Mutations& mutations) {
    return fault_after([&](auto& options, auto& pbt) {
      options.param_space = {{"opt", choice({{{"type", "sgd"}, {"momentum", uniform(0, 1)}}, {{"type", "adam"}}})}};
      pbt.hyperparam_mutations = mutations;
    });
  };
  EXPECT_EQ(fault({{"opt", {{"momentum", uniform(0, 1)}}}}), "");
  EXPECT_THAT(fault({{"opt", {{"beta", uniform(0, 1)}}}}), HasSubstr("\"beta\": param_space has no such key"));
  EXPECT_THAT(fault({{"opt", choice({uniform(0, 1)})}}), HasSubstr("mutate its keys"));
  EXPECT_THAT(fault({{"opt", {{"momentum", choice({uniform(0, 1)})}}}}), HasSubstr("must be plain values"));
  EXPECT_THAT(fault({{"opt", {{"type", {1}}, {"type", {2}}}}}), HasSubstr("the key is there twice"));
}

TEST(Options, ARealDomainForAnIntegerMustHoldOne) {
  EXPECT_THAT(fault_after([](auto& options, auto& pbt) {
                options.param_space = {{"n", 5}};
                pbt.hyperparam_mutations = {{"n", uniform(0.3, 0.4)}};
              }),
              HasSubstr("uniform(0.3, 0.4) holds no integer"));
}

TEST(Options, EveryPbtSettingIsChecked) {
  const auto fault = [](auto change) { return fault_after([&](auto&, auto& pbt) { change(pbt); }); };
  EXPECT_THAT(fault([](auto& pbt) { pbt.time_attr = ""; }), HasSubstr("time_attr"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.metric = ""; }), HasSubstr("say what trials are compared by"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.perturbation_interval = 0; }), HasSubstr("perturbation_interval: it is 0"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.perturbation_interval = std::nan(""); }), HasSubstr("perturbation_interval"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.burn_in_period = -1; }), HasSubstr("burn_in_period: it is -1"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.quantile_fraction = 0.6; }), HasSubstr("quantile_fraction: it is 0.6"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.resample_probability = 2; }), HasSubstr("resample_probability: it is 2"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.perturbation_factors = {1.2, 0}; }), HasSubstr("perturbation_factors"));
  EXPECT_THAT(fault([](auto& pbt) { pbt.hyperparam_mutations = {}; }), HasSubstr("at least one key"));
}

TEST(Options, TwoDifferentMetricsAreRefusedAndOneIsEnough) {
  EXPECT_THAT(fault_after([](auto& options, auto&) { options.tune_config.metric = minimize("loss"); }),
              HasSubstr("it is \"accuracy\", but the TuneConfig's metric is \"loss\""));
  EXPECT_EQ(fault_after([](auto& options, auto& pbt) {
              pbt.metric = "";
              options.tune_config.metric = maximize("accuracy");
            }),
            "");
}

TunerOptions resolved(TunerOptions options) {
  std::vector<std::string> notes;
  return resolve(fn<train_for_options>, std::move(options), notes);
}

TEST(Objective, IsSaidOnceAndCountsForAllThatHasNoneOfItsOwn) {
  TunerOptions options = good_options();
  options.tune_config.scheduler.get<PopulationBasedTraining>().metric = {};
  options.tune_config.metric = minimize("loss");
  options.run_config.stop = any_of(Stop{{"loss", 0.1}, {"training_iteration", 50}, {"loss", at_least(9)}},
                                   ExperimentPlateauStopper{}, TrialPlateauStopper{.metric_threshold = 1});
  options.run_config.checkpoint_config.checkpoint_score_attribute = "loss";
  for (const bool with_mode_beside : {false, true}) {
    if (with_mode_beside) {
      options.tune_config.metric = "loss";
      options.tune_config.mode = Mode::min;
    }
    const TunerOptions complete = resolved(options);
    EXPECT_EQ(complete.tune_config.metric.name, "loss");
    EXPECT_EQ(complete.tune_config.mode, Mode::min);
    const auto& pbt = complete.tune_config.scheduler.get<PopulationBasedTraining>();
    EXPECT_EQ(pbt.metric.name, "loss");
    EXPECT_EQ(pbt.mode, Mode::min);
    const Stop& stop = complete.run_config.stop;
    EXPECT_EQ(stop.thresholds,
              (Thresholds{{"loss", at_most(0.1)}, {"training_iteration", at_least(50)}, {"loss", at_least(9)}}));
    const auto& of_all = stop.stoppers.at(0).get<ExperimentPlateauStopper>();
    EXPECT_EQ(of_all.metric.name, "loss");
    EXPECT_EQ(of_all.mode, Mode::min);
    EXPECT_EQ(stop.stoppers.at(1).get<TrialPlateauStopper>().mode, Mode::min);
    EXPECT_EQ(complete.run_config.checkpoint_config.checkpoint_score_order, Mode::min);
    EXPECT_NO_THROW(check_options(fn<train_for_options>, complete));
  }
}

TEST(Objective, TheSchedulersIsTheTuneConfigsWhereThatHasNone) {
  TunerOptions options = good_options();
  auto& pbt = options.tune_config.scheduler.get<PopulationBasedTraining>();
  const auto expect_max = [&] {
    const TunerOptions complete = resolved(options);
    EXPECT_EQ(complete.tune_config.metric.name, "accuracy");
    EXPECT_EQ(complete.tune_config.mode, Mode::max);
    EXPECT_EQ(complete.tune_config.scheduler.get<PopulationBasedTraining>().mode, Mode::max);
  };
  expect_max();
  pbt.metric = "accuracy";
  options.tune_config.mode = Mode::max;  // the name in the scheduler, the direction in tune_config
  expect_max();
  options.tune_config = {.metric = "accuracy", .num_samples = 4, .scheduler = good_pbt()};  // and the other way round
  expect_max();
}

TEST(Objective, AMetricWithoutADirectionIsRefusedWhereverTheDirectionMatters) {
  const auto fault = [](auto change) {
    return fault_after([&](auto& options, auto& pbt) {
      options.run_config.stop = {};
      pbt.metric = {};
      options.tune_config.metric = maximize("accuracy");
      change(options, pbt);
    });
  };
  EXPECT_EQ(fault([](auto&, auto&) {}), "");
  const auto names = [](const std::string& option, const std::string& metric) {
    return AllOf(HasSubstr(option), HasSubstr("which values of \"" + metric + "\" are good"),
                 HasSubstr("minimize(\"" + metric + "\")"), HasSubstr("maximize(\"" + metric + "\")"));
  };
  EXPECT_THAT(fault([](auto& options, auto&) { options.tune_config.metric = "loss"; }),
              names("tune_config metric", "loss"));
  EXPECT_THAT(fault([](auto& options, auto& pbt) {
                options.tune_config.metric = {};
                pbt.metric = "loss";
              }),
              names("tune_config metric", "loss"));
  EXPECT_THAT(
      fault([](auto& options, auto&) { options.run_config.checkpoint_config.checkpoint_score_attribute = "loss"; }),
      names("checkpoint_score_attribute", "loss"));
  EXPECT_THAT(fault([](auto& options, auto&) { options.run_config.stop = ExperimentPlateauStopper{.metric = "loss"}; }),
              names("stop (ExperimentPlateauStopper) metric", "loss"));
  EXPECT_EQ(fault([](auto& options, auto&) { options.run_config.stop = TrialPlateauStopper{.metric = "loss"}; }), "");
  EXPECT_THAT(fault([](auto& options, auto&) { options.run_config.stop = {{"loss", 0.25}}; }),
              AllOf(HasSubstr("stop \"loss\""), HasSubstr("at_least(0.25)"), HasSubstr("at_most(0.25)")));
  EXPECT_EQ(fault([](auto& options, auto&) {
              options.run_config.stop = {{"loss", at_most(0.25)}, {"time_total_s", 10}, {"episodes_total", 3}};
            }),
            "");
}

TEST(Objective, TwoDirectionsOfOneMetricAreRefused) {
  const auto fault = [](auto change) {
    return fault_after([&](auto& options, auto& pbt) {
      options.tune_config.metric = maximize("accuracy");
      change(options, pbt);
    });
  };
  EXPECT_THAT(fault([](auto& options, auto&) { options.tune_config.mode = Mode::min; }),
              HasSubstr("said to be max with the metric, and min by mode"));
  EXPECT_THAT(fault([](auto&, auto& pbt) { pbt.metric = minimize("accuracy"); }),
              HasSubstr("the direction min for \"accuracy\", and the TuneConfig has max"));
  EXPECT_THAT(fault([](auto& options, auto&) {
                options.run_config.checkpoint_config.checkpoint_score_attribute = minimize("accuracy");
              }),
              HasSubstr("the direction min"));
  EXPECT_THAT(
      fault([](auto& options, auto&) { options.run_config.checkpoint_config.checkpoint_score_order = Mode::min; }),
      HasSubstr("checkpoint_score_order is said, and there is no metric"));
}

TEST(Options, CountsNamesAndThresholdsAreChecked) {
  const auto fault = [](auto change) { return fault_after([&](auto& options, auto&) { change(options); }); };
  EXPECT_THAT(fault([](auto& o) { o.tune_config.num_samples = 0; }), HasSubstr("num_samples: it is 0"));
  EXPECT_THAT(fault([](auto& o) { o.tune_config.max_concurrent_trials = -1; }), HasSubstr("max_concurrent_trials"));
  EXPECT_THAT(fault([](auto& o) { o.run_config.checkpoint_config.num_to_keep = 0; }),
              HasSubstr("num_to_keep: it is 0"));
  EXPECT_THAT(fault([](auto& o) { o.run_config.name = "../x"; }), HasSubstr("\"../x\" cannot name a directory"));
  EXPECT_THAT(fault([](auto& o) { o.run_config.stop = {{"loss", std::nan("")}}; }), HasSubstr("NaN"));
}

TEST(Options, ResourcesMustBePossible) {
  for (const Resources& bad : {Resources{.cpus = -1}, Resources{.cpus = std::nan("")}, Resources{.cpus = 0}})
    EXPECT_THROW(check_options(with_resources(fn<train_for_options>, bad), good_options()), InvalidArgument);
}

TEST(Options, AllFaultsComeInOneMessage) {
  const std::string fault = fault_after([](auto& options, auto& pbt) {
    options.tune_config.num_samples = 0;
    pbt.quantile_fraction = 7;
  });
  EXPECT_THAT(fault, HasSubstr("num_samples"));
  EXPECT_THAT(fault, HasSubstr("quantile_fraction"));
}

TEST(Options, ATrainableThatIsNotRegisteredIsRefused) {
  EXPECT_THROW(check_options(Trainable{"nobody"}, good_options()), InvalidArgument);
}

TEST(Options, ParametersMustBeTakenByTheFunctionAndBeSmall) {
  const auto fault = [](const Trainable& trainable) {
    std::vector<std::string> notes;
    const TunerOptions options = resolve(trainable, good_options(), notes);
    return test_support::message_of<InvalidArgument>([&] { check_options(trainable, options); });
  };
  const Trainable takes = fn<train_with_parameters>;
  EXPECT_EQ(fault(with_parameters(takes, {{"a", 1}})), "nothing was thrown");
  EXPECT_THAT(fault(with_parameters(fn<train_for_options>, {{"a", 1}})),
              HasSubstr("with_parameters: train_for_options takes no second argument"));
  EXPECT_THAT(fault(takes), HasSubstr("with_parameters: train_with_parameters takes parameters"));
  const std::string mebibyte(std::size_t{1} << 20, 'x');
  EXPECT_EQ(fault(with_parameters(takes, {{"a", mebibyte}})), "nothing was thrown");
  EXPECT_THAT(fault(with_parameters(takes, {{"small", 1}, {"large", mebibyte + "x"}})),
              AllOf(HasSubstr("with_parameters \"large\": it has 1048577 bytes"), HasSubstr("cadre::put")));
  Config many;
  for (int i = 0; i < 17; ++i) many.set(std::to_string(i), mebibyte);
  EXPECT_THAT(fault(with_parameters(takes, many)), HasSubstr("with_parameters: they have 178"));
}

TEST(Options, AnObjectThatNobodyHoldsIsNamed) {
  const auto change = [](const Reference& reference) {
    return fault_after(
        [&](TunerOptions& options, auto&) { options.param_space.emplace_back("data", choice({reference, 1})); });
  };
  const ObjectRef held = put("held");
  EXPECT_EQ(change(to_reference(held)), "");
  const Reference gone = to_reference(put("gone"));
  EXPECT_THAT(change(gone), AllOf(HasSubstr("param_space/data/options/0/value: the object " + gone.id + " is gone"),
                                  HasSubstr("Keep what cadre::put returned")));
  EXPECT_THAT(change({"object", "no id"}), HasSubstr("names no object"));
}

TEST(Options, ACheckpointThatIsNotThereIsNamed) {
  const auto change = [](const std::filesystem::path& directory) {
    return fault_after([&](TunerOptions& options, auto&) {
      options.param_space.emplace_back("from", choice({Checkpoint::from_directory(directory), 1}));
    });
  };
  const test_support::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "there");
  EXPECT_EQ(change(directory / "there"), "");
  EXPECT_THAT(change(directory / "gone"), AllOf(HasSubstr("param_space/from/options/0/value: there is no checkpoint " +
                                                          (directory / "gone").string()),
                                                HasSubstr("no such directory")));
  EXPECT_THAT(change("s3://bucket/gone"), HasSubstr("there is no checkpoint s3://bucket/gone"));
}

TEST(Options, WhatTheStoreWouldNotGiveBackIsNamed) {
  const auto fault = [](Value constant) {
    return fault_after([&](auto& options, auto&) { options.param_space = {{"lr", 1}, {"model", {{"x", constant}}}}; });
  };
  EXPECT_THAT(fault("caf\xe9"), HasSubstr("param_space/model/entries/x/value: it would not be read back"));
  EXPECT_THAT(fault(Dict{{"$reference", list("dataset", "mnist")}}), HasSubstr("/x/value: it would not be read back"));
  Value deep = 1;
  for (int i = 0; i < 64; ++i) deep = List{deep};
  EXPECT_THAT(fault(deep), HasSubstr("nested deeper than 64"));
}

// ---- replays

PopulationBasedTrainingReplay good_replay() {
  return {.schedule = PolicySchedule{{{"lr", 0.1}}, {{5, {{"lr", 0.2}}}}}};
}

struct Typed {
  double lr = 0;
};
void train_typed_for_options(const Typed&) {}

TEST(Options, AReplayTrainsOneTrialThatBeginsWithItsSchedule) {
  const auto fault = [](auto change) {
    return fault_after([&](TunerOptions& options, PopulationBasedTraining&) {
      options.tune_config.num_samples = 1;
      options.tune_config.scheduler = good_replay();
      change(options);
    });
  };
  EXPECT_EQ(fault([](TunerOptions&) {}), "");
  EXPECT_THAT(fault([](TunerOptions& options) { options.tune_config.num_samples = 2; }),
              HasSubstr("num_samples: it is 2; a replay trains 1 trial"));
  EXPECT_THAT(fault([](TunerOptions& options) { options.param_space = {{"a", grid_search({1, 2})}}; }),
              HasSubstr("param_space: it has grids"));
  EXPECT_THAT(fault([](TunerOptions& options) { options.tune_config.points_to_evaluate = {{{"lr", 0.5}}}; }),
              HasSubstr("points_to_evaluate: a replay begins with the first config"));
  EXPECT_THAT(fault([](TunerOptions& options) { options.tune_config.scheduler = PopulationBasedTrainingReplay(); }),
              HasSubstr("scheduler (PopulationBasedTrainingReplay) policy_file: name the file"));
  const auto empty = [](TunerOptions& options) {
    options.param_space = {};
    options.tune_config.scheduler = PopulationBasedTrainingReplay{.schedule = PolicySchedule()};
  };
  EXPECT_THAT(fault(empty), HasSubstr("there is no config to train with"));
}

TEST(Options, APolicyFileIsReadOnceAndItsValuesCount) {
  const test_support::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "pbt_policy_00001.txt";
  TunerOptions options = good_options();
  options.param_space = {{"lr", uniform(0, 1)}, {"epochs", 5}, {"width", 8}, {"data", "here"}};
  options.tune_config.num_samples = 1;
  options.tune_config.scheduler = PopulationBasedTrainingReplay{.policy_file = file};
  std::vector<std::string> notes;
  EXPECT_THAT(
      test_support::message_of<InvalidArgument>([&] { resolve({}, options, notes); }),
      HasSubstr("scheduler (PopulationBasedTrainingReplay) policy_file: cannot read the policy file " + file.string()));
  test_support::write_bytes(
      file, R"(["1", "0", 4, 5, {"lr": 0.1, "epochs": 5, "width": 9}, {"lr": 0.2, "epochs": 5, "width": 9}])");
  options = resolve({}, std::move(options), notes);
  EXPECT_THAT(notes, ElementsAre("param_space lr, width: what is replayed has values of its own, which count instead"));
  std::filesystem::remove(file);
  notes.clear();
  const TunerOptions again = resolve({}, options, notes);
  EXPECT_EQ(again.tune_config.scheduler.get<PopulationBasedTrainingReplay>().schedule->changes.size(), 1u);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_NO_THROW(check_options(fn<train_for_options>, again));
}

TEST(Options, EveryConfigOfAScheduleMustFitTheStructThatTheFunctionTakes) {
  TunerOptions options{.tune_config = {.scheduler = PopulationBasedTrainingReplay{
                                           .schedule = PolicySchedule{{{"lr", 0.1}}, {{5, {{"lr", "high"}}}}}}}};
  EXPECT_THAT(
      test_support::message_of<InvalidArgument>([&] { check_options(fn<train_typed_for_options>, options); }),
      HasSubstr("scheduler (PopulationBasedTrainingReplay): train_typed_for_options cannot take iteration 5's config: "
                "key \"lr\""));
}

}  // namespace
}  // namespace cadre::tune
