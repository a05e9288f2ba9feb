#include "cadre/tune/searchers/quasi_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/told_searcher.h"
#include "tune/options/options.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using test_support::space_of_all_kinds;
using test_support::ToldSearcher;
using ::testing::HasSubstr;

const std::vector<QuasiRandom> both{{.sequence = Sequence::sobol}, {.sequence = Sequence::halton}};

TEST(QuasiRandom, SuggestionsLieInTheSpace) {
  for (const QuasiRandom& options : both) {
    for (const bool scramble : {true, false}) {
      QuasiRandom own = options;
      own.scramble = scramble;
      ToldSearcher searcher(own, {.seed = 3, .space = space_of_all_kinds()});
      for (int i = 0; i < 200; ++i) EXPECT_NO_THROW(searcher.add());
    }
  }
}

TEST(QuasiRandom, SixteenTrialsHaveEachValueEquallyOften) {
  ToldSearcher searcher(QuasiRandom(), {.seed = 5,
                                        .space = {{"x", uniform(0, 16)},
                                                  {"layers", randint(1, 9)},
                                                  {"norm", choice({"batch", "layer", "group", "none"})}}});
  std::set<int> x;
  std::map<std::int64_t, int> layers;
  std::map<std::string, int> norms;
  for (TrialIndex trial = 0; trial < 16; ++trial) {
    const Config& config = searcher.config(searcher.add());
    x.insert(static_cast<int>(config.get<double>("x")));
    ++layers[config.get<std::int64_t>("layers")];
    ++norms[config.get<std::string>("norm")];
  }
  EXPECT_EQ(x.size(), 16U);
  EXPECT_EQ(layers.size(), 8U);
  for (const auto& [value, count] : layers) EXPECT_EQ(count, 2) << value;
  for (const auto& [value, count] : norms) EXPECT_EQ(count, 4) << value;
}

TEST(QuasiRandom, ARestoreGivesTheSameSuggestionsWhateverHasEnded) {
  for (const QuasiRandom& options : both) {
    ToldSearcher searcher(options, {.seed = 3, .space = space_of_all_kinds()});
    for (int i = 0; i < 9; ++i) searcher.add();
    searcher.end(4, {{"loss", 1}});
    searcher.end(2, {}, TrialStatus::error);
    ToldSearcher again = searcher.restored();
    for (int i = 0; i < 9; ++i) EXPECT_EQ(again.config(again.add()), searcher.config(searcher.add()));
  }
}

TEST(QuasiRandom, TheSeedChangesScrambledPointsOnly) {
  const auto first = [](QuasiRandom options, std::uint64_t seed) {
    return ToldSearcher(options, {.seed = seed, .space = {{"x", uniform(0, 1)}}}).next();
  };
  for (const QuasiRandom& options : both) {
    EXPECT_NE(first(options, 1), first(options, 2));
    QuasiRandom plain = options;
    plain.scramble = false;
    EXPECT_EQ(first(plain, 1), first(plain, 2));
  }
}

TEST(QuasiRandom, FindsABetterPointThanRandomSearchWhereOneParameterMatters) {
  const auto mean_best = [](const AnySearcher& searcher) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Study study({{"x", uniform(-1, 1)}, {"y", uniform(-1, 1)}},
                  {.metric = minimize("loss"), .searcher = searcher, .seed = seed});
      for (int i = 0; i < 64; ++i) {
        const auto [trial, config] = *study.suggest();
        study.observe(trial,
                      {{"loss", std::abs(config.get<double>("x") - 0.3) + 0.01 * std::abs(config.get<double>("y"))}});
      }
      sum += *study.result(*study.best()).number("loss");
    }
    return sum / 20;
  };
  const double random = mean_best(RandomSearch());
  for (const QuasiRandom& options : both) EXPECT_LT(mean_best(options), 0.75 * random);
}

TEST(QuasiRandom, GoesTogetherWithPopulationBasedTraining) {
  TunerOptions options{
      .param_space = {{"x", uniform(0, 10)}},
      .tune_config = {.metric = minimize("loss"),
                      .searcher = QuasiRandom(),
                      .scheduler = PopulationBasedTraining{.time_attr = "training_iteration",
                                                           .perturbation_interval = 1,
                                                           .hyperparam_mutations = {{"x", uniform(0, 10)}}}}};
  std::vector<std::string> notes;
  EXPECT_NO_THROW(check_search(resolve(Trainable("f"), options, notes)));
}

TEST(QuasiRandom, MoreParametersThanSobolHasAreRefused) {
  const auto fault = [](const QuasiRandom& searcher, int parameters) {
    Space space;
    for (int i = 0; i < parameters; ++i) space.emplace_back("x" + std::to_string(i), uniform(0, 1));
    return message_of<InvalidArgument>(
        [&] { Study(space, {.metric = minimize("loss"), .searcher = searcher}).suggest(); });
  };
  EXPECT_THAT(fault({}, 257), HasSubstr("searcher (QuasiRandom) sequence: param_space has 257 parameters, and sobol "
                                        "has up to 256: use Sequence::halton"));
  EXPECT_EQ(fault({}, 256), "nothing was thrown");
  EXPECT_EQ(fault({.sequence = Sequence::halton}, 257), "nothing was thrown");
}

TEST(QuasiRandom, IsStoredAndReadBack) {
  AnySearcher read;
  read_stored(read, Stored(to_stored(AnySearcher(QuasiRandom{.sequence = Sequence::halton, .scramble = false}))));
  EXPECT_EQ(read.get<QuasiRandom>().sequence, Sequence::halton);
  EXPECT_FALSE(read.get<QuasiRandom>().scramble);
}

}  // namespace
}  // namespace cadre::tune
