#include "cadre/tune/searchers/cmaes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/told_searcher.h"

namespace cadre::tune {
namespace {

using test_support::cube;
using test_support::message_of;
using test_support::space_of_all_kinds;
using test_support::ToldSearcher;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A loss of any config of any space.
double loss_of(const Point& point) {
  double sum = 0;
  for (const double x : point) sum += std::isnan(x) ? 0.1 : std::pow(x - 0.7, 2);
  return sum;
}

// Minimises with several trials at a time, of which the first one ends first; returns the best loss.
double best_of(const AnySearcher& searcher, const Space& space, std::int64_t trials, std::size_t parallel,
               std::uint64_t seed, const std::function<double(const Config&)>& loss) {
  Study study(space, {.metric = minimize("loss"), .searcher = searcher, .seed = seed});
  std::deque<Suggestion> open;
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t ended = 0; ended < trials;) {
    if (open.size() < parallel) {
      open.push_back(*study.suggest());
      continue;
    }
    const double value = loss(open.front().config);
    study.observe(open.front().trial, {{"loss", value}});
    open.pop_front();
    best = std::min(best, value);
    ++ended;
  }
  return best;
}

double distance_squared(const Config& config, double optimum) {
  double sum = 0;
  for (const auto& [key, value] : config.dict()) sum += std::pow(value.get<double>() - optimum, 2);
  return sum;
}

TEST(CmaEs, SuggestionsLieInTheSpace) {
  ToldSearcher searcher(CMAES{.sigma0 = 0.5}, {.seed = 1, .space = space_of_all_kinds(), .metric = minimize("loss")});
  for (int i = 0; i < 300; ++i) {
    TrialIndex trial = 0;
    ASSERT_NO_THROW(trial = searcher.add());
    searcher.end(trial, {{"loss", loss_of(searcher.point(trial))}});
  }
}

TEST(CmaEs, FindsTheOptimumOfARotatedFunction) {
  const auto loss = [](const Config& config) {
    const double a = config.get<double>("x0") + config.get<double>("x1") - 0.9;
    const double b = config.get<double>("x0") - config.get<double>("x1") + 0.3;
    return 100 * a * a + b * b + std::pow(config.get<double>("x2") - 0.2, 2);
  };
  for (const std::size_t parallel : {1, 8}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_LT(best_of(CMAES(), cube(3), 400, parallel, seed, loss), 1e-6);
      EXPECT_GT(best_of(RandomSearch(), cube(3), 400, parallel, seed, loss), 1e-4);
    }
  }
}

TEST(CmaEs, FindsAnOptimumAtTheBorder) {
  for (const double corner : {0.0, 1.0}) {
    EXPECT_LT(
        best_of(CMAES(), cube(4), 300, 1, 3, [&](const Config& config) { return distance_squared(config, corner); }),
        1e-6);
  }
}

TEST(CmaEs, FindsTheBestIntegersAndIsNotStuckAtOne) {
  const Space space{
      {"a", randint(0, 100)}, {"b", randint(0, 2)}, {"c", ordinal({1, 2, 3, 4, 5})}, {"x", uniform(0, 1)}};
  const auto loss = [](const Config& config) {
    const double x = config.get<double>("x");
    return std::abs(config.get<double>("a") - 83) + std::abs(config.get<double>("c") - 2) + x * x +
           (x < 0.01 && config.get<double>("b") == 1 ? 0 : 3);  // b matters late
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) EXPECT_LT(best_of(CMAES(), space, 500, 1, seed, loss), 0.001);
}

TEST(CmaEs, FindsTheBestOptionAndWhatExistsUnderIt) {
  const Space space{{"model", choice({Space{{"name", "a"}, {"lr", loguniform(1e-5, 1)}},
                                      Space{{"name", "b"}, {"lr", loguniform(1e-5, 1)}, {"rate", uniform(0, 1)}},
                                      Space{{"name", "c"}, {"width", randint(1, 65)}}})},
                    {"norm", choice({"batch", "layer", "none"})}};
  const auto loss = [](const Config& config) {
    const Config model(config.at("model"));
    double value = config.get<std::string>("norm") == "layer" ? 0 : 0.5;
    if (model.get<std::string>("name") == "a") value += 1 + std::abs(std::log10(model.get<double>("lr")) + 1);
    if (model.get<std::string>("name") == "b")
      value += std::abs(std::log10(model.get<double>("lr")) + 4) + std::abs(model.get<double>("rate") - 0.9);
    if (model.get<std::string>("name") == "c") value += 0.6 + std::abs(model.get<double>("width") - 10);
    return value;
  };
  double own = 0;
  double random = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    own += best_of(CMAES(), space, 300, 4, seed, loss) / 10;
    random += best_of(RandomSearch(), space, 300, 4, seed, loss) / 10;
  }
  EXPECT_LT(own, 0.3 * random);
}

TEST(CmaEs, ASpaceOfChoicesOnlyIsSearchedToo) {
  Space space;
  for (int i = 0; i < 6; ++i) space.emplace_back("c" + std::to_string(i), choice({0, 1, 2, 3, 4}));
  const auto loss = [](const Config& config) { return distance_squared(config, 3); };
  EXPECT_EQ(best_of(CMAES(), space, 300, 1, 1, loss), 0);
}

TEST(CmaEs, StartsAroundX0) {
  const Space space{{"x", uniform(0, 10)}, {"n", randint(0, 100)}, {"c", choice({"a", "b", "c", "d"})}};
  ToldSearcher searcher(CMAES{.sigma0 = 0.01, .x0 = Config{{"x", 9}, {"n", 20}, {"c", "d"}}},
                        {.seed = 1, .space = space, .metric = minimize("loss")});
  int with_its_option = 0;
  for (int i = 0; i < 64; ++i) {
    const Config& config = searcher.config(searcher.add());
    EXPECT_NEAR(config.get<double>("x"), 9, 0.5);
    EXPECT_NEAR(config.get<double>("n"), 20, 5);
    with_its_option += config.get<std::string>("c") == "d" ? 1 : 0;
  }
  EXPECT_NEAR(with_its_option, 64 * (0.5 + 0.5 / 4), 3);
}

// ---- How trials count

// Returns the median of x of trials that are suggested after generations in which `end` decides how a trial ends.
double later_x(CMAES options, const std::function<void(ToldSearcher&, TrialIndex, double)>& end) {
  ToldSearcher searcher(std::move(options), {.seed = 2, .space = cube(2), .metric = minimize("loss")});
  for (int i = 0; i < 120; ++i) {
    const TrialIndex trial = searcher.add();
    end(searcher, trial, searcher.config(trial).get<double>("x0"));
  }
  std::vector<double> later;
  for (int i = 0; i < 31; ++i) later.push_back(searcher.config(searcher.add()).get<double>("x0"));
  std::ranges::nth_element(later, later.begin() + 15);
  return later[15];
}

TEST(CmaEs, NanIsTheWorstLoss) {
  EXPECT_LT(later_x({}, [](ToldSearcher& searcher, TrialIndex trial,
                           double x) { searcher.end(trial, {{"loss", x > 0.6 ? kNan : -x}}); }),
            0.61);
}

TEST(CmaEs, TrialsThatBreakAConstraintComeLast) {
  const CMAES options{.constraints = {{.metric = "latency", .at_most = 0.4}}};
  EXPECT_NEAR(later_x(options, [](ToldSearcher& searcher, TrialIndex trial,
                                  double x) { searcher.end(trial, {{"loss", -x}, {"latency", x}}); }),
              0.4, 0.02);
}

TEST(CmaEs, TrialsThatASchedulerStoppedComeAfterTheOthers) {
  EXPECT_GT(later_x({},
                    [](ToldSearcher& searcher, TrialIndex trial, double x) {
                      if (x < 0.6) return searcher.end(trial, {{"loss", x}}, TrialStatus::stopped);
                      searcher.end(trial, {{"loss", 1 + x}});
                    }),
            0.58);
}

TEST(CmaEs, FailedTrialsAreReplaced) {
  const auto end_good = [](ToldSearcher& searcher, TrialIndex trial, double) {
    searcher.end(trial, {{"loss", loss_of(searcher.point(trial))}});
  };
  ToldSearcher searcher(CMAES{.popsize = 4}, {.seed = 2, .space = cube(2), .metric = minimize("loss")});
  for (int i = 0; i < 3; ++i) end_good(searcher, searcher.add(), 0);
  searcher.end(searcher.add(), {}, TrialStatus::error);
  searcher.end(searcher.add(), {{"other", 1}});
  EXPECT_THAT(searcher.searcher().debug_string(), HasSubstr("generation 0"));
  end_good(searcher, searcher.add(), 0);
  EXPECT_THAT(searcher.searcher().debug_string(), HasSubstr("generation 1"));
}

TEST(CmaEs, AGenerationEndsWithAnyTrials) {
  ToldSearcher searcher(CMAES{.popsize = 4}, {.seed = 2, .space = cube(2), .metric = minimize("loss")});
  for (int i = 0; i < 12; ++i) searcher.add();
  for (TrialIndex trial = 12; trial-- > 0;) searcher.end(trial, {{"loss", loss_of(searcher.point(trial))}});
  EXPECT_THAT(searcher.searcher().debug_string(), HasSubstr("generation 3"));
}

TEST(CmaEs, LearnsFromConfigsThatItHasNotSuggested) {
  const auto mean_of_next = [](bool adds) {
    ToldSearcher searcher(CMAES{.sigma0 = 0.05, .popsize = 4},
                          {.seed = 2, .space = cube(1), .metric = minimize("loss")});
    for (int i = 0; i < 4; ++i) {
      const TrialIndex trial = adds ? searcher.add(Config{{"x0", 0.9}}) : searcher.add();
      searcher.end(trial, {{"loss", 1}});
    }
    double sum = 0;
    for (int i = 0; i < 16; ++i) sum += searcher.config(searcher.add()).get<double>("x0") / 16;
    return sum;
  };
  EXPECT_NEAR(mean_of_next(false), 0.5, 0.05);
  EXPECT_GT(mean_of_next(true), 0.55);
  EXPECT_LT(mean_of_next(true), 0.7) << "it moves by few standard deviations";
}

TEST(CmaEs, BeginsAnewWhenItHasConverged) {
  // A valley where it begins, and one that is deeper.
  const auto loss = [](const Config& config) {
    return std::min(distance_squared(config, 0.35), 4 * distance_squared(config, 0.85) - 0.05);
  };
  const auto best = [&](Restart restart) {
    double best = 1;
    for (std::uint64_t seed = 0; seed < 2; ++seed)
      best = std::min(best, best_of(CMAES{.sigma0 = 0.1, .restart = restart}, cube(2), 1200, 1, seed, loss));
    return best;
  };
  EXPECT_GE(best(Restart::none), 0);
  EXPECT_LT(best(Restart::ipop), -0.045);
  EXPECT_LT(best(Restart::bipop), -0.045);
}

TEST(CmaEs, StaysAsNarrowAsItIsWhenItHasConvergedWithoutARestart) {
  ToldSearcher searcher(CMAES{.restart = Restart::none}, {.seed = 1, .space = cube(2), .metric = minimize("loss")});
  const auto try_more = [&](int trials) {
    for (int i = 0; i < trials; ++i) {
      const TrialIndex trial = searcher.add();
      searcher.end(trial, {{"loss", loss_of(searcher.point(trial))}});
    }
  };
  try_more(3000);
  const std::string converged = searcher.searcher().debug_string();
  try_more(300);
  EXPECT_EQ(searcher.searcher().debug_string(), converged);
  EXPECT_NEAR(searcher.next().get<double>("x0"), 0.7, 1e-6);
}

// ---- State

// Ends some of the open trials in another order than they began, in many ways.
void go_on(ToldSearcher& searcher, std::vector<TrialIndex>& open, int steps, std::uint64_t seed) {
  base::RandomStream random(seed, 0, base::Purpose::own);
  for (int i = 0; i < steps; ++i) {
    if (open.size() < 7) {
      open.push_back(searcher.add());
      continue;
    }
    const auto chosen = open.begin() + static_cast<std::ptrdiff_t>(random.below(open.size()));
    const double loss = loss_of(searcher.point(*chosen));
    switch (random.below(8)) {
      case 0:
        searcher.end(*chosen, {{"loss", loss}}, TrialStatus::error);
        break;
      case 1:
        searcher.end(*chosen, {{"loss", loss}, {"training_iteration", 3}}, TrialStatus::stopped);
        break;
      case 2:
        searcher.end(*chosen, {{"loss", kNan}, {"latency", kNan}});
        break;
      default:
        searcher.end(*chosen, {{"loss", loss}, {"latency", loss}});
    }
    open.erase(chosen);
  }
}

TEST(CmaEs, ARestoreGivesTheSameSuggestions) {
  const CMAES options{.constraints = {{.metric = "latency", .at_most = 1}}};
  ToldSearcher searcher(options, {.seed = 4, .space = space_of_all_kinds(), .metric = minimize("loss")});
  std::vector<TrialIndex> open;
  for (std::uint64_t moment = 0; moment < 8; ++moment) {
    go_on(searcher, open, 23 + static_cast<int>(moment) * 11, moment);
    ToldSearcher again = searcher.restored();
    ASSERT_EQ(again.next(), searcher.next());
    ASSERT_EQ(to_json(again.searcher().save()), to_json(searcher.searcher().save()));
    std::vector<TrialIndex> also_open = open;
    go_on(again, also_open, 60, 100 + moment);
    go_on(searcher, open, 60, 100 + moment);
    ASSERT_EQ(again.next(), searcher.next()) << "moment " << moment;
  }
}

TEST(CmaEs, ARestoreAfterARestartOfTheSearchGivesTheSameSuggestions) {
  ToldSearcher searcher(CMAES(), {.seed = 4, .space = cube(1), .metric = minimize("loss")});
  for (int i = 0; i < 1000; ++i) {
    const TrialIndex trial = searcher.add();
    searcher.end(trial, {{"loss", loss_of(searcher.point(trial))}});
    if (i % 200 == 0) EXPECT_EQ(searcher.restored().next(), searcher.next());
  }
  EXPECT_THAT(searcher.searcher().debug_string(), ::testing::Not(HasSubstr(" 0 restarts")));
  EXPECT_EQ(searcher.restored().next(), searcher.next());
}

TEST(CmaEs, AStateOfAnotherSpaceIsRefused) {
  const ToldSearcher searcher(CMAES(), {.space = cube(2), .metric = minimize("loss")});
  const SearcherSetting other{.space = cube(3), .metric = minimize("loss")};
  EXPECT_THROW(CMAES().make(other)->load(searcher.searcher().save()), InvalidArgument);
}

TEST(CmaEs, ASuggestionLeavesNoTrace) {
  ToldSearcher searcher(CMAES(), {.seed = 4, .space = cube(3), .metric = minimize("loss")});
  const Config first = searcher.next();
  searcher.searcher().suggest(17);
  EXPECT_EQ(searcher.next(), first);
}

// ---- Options

TEST(CmaEs, BadOptionsAreNamed) {
  const auto fault = [](const CMAES& searcher) {
    return message_of<InvalidArgument>([&] { Study(cube(2), {.metric = minimize("loss"), .searcher = searcher}); });
  };
  EXPECT_THAT(fault({.sigma0 = 0}), HasSubstr("searcher (CMAES) sigma0: it is 0; it must be above 0"));
  EXPECT_THAT(fault({.sigma0 = kNan}), HasSubstr("(CMAES) sigma0: it is nan"));
  EXPECT_THAT(fault({.popsize = 1}), HasSubstr("(CMAES) popsize: it is 1; it must be from 2 to 1000000"));
  EXPECT_THAT(fault({.x0 = Config{{"x0", 0.5}}}), HasSubstr("(CMAES) x0: {\"x0\": 0.5} is no config of param_space"));
  EXPECT_THAT(fault({.constraints = {{.at_most = 1}}}), HasSubstr("(CMAES) constraints[0]: it has no metric"));
  EXPECT_THAT(fault({.constraints = {{.metric = "a", .at_most = kNan}}}),
              HasSubstr("(CMAES) constraints[0]: its at_most is nan"));
  EXPECT_EQ(fault({.x0 = Config{{"x0", 0.5}, {"x1", 1}}}), "nothing was thrown");
}

TEST(CmaEs, IsStoredAndReadBack) {
  AnySearcher read;
  const CMAES options{.sigma0 = 0.3,
                      .x0 = Config{{"x0", 0.5}},
                      .popsize = 9,
                      .restart = Restart::ipop,
                      .constraints = {{.metric = "latency", .at_most = 2}}};
  const Value stored = to_stored(AnySearcher(options));
  read_stored(read, Stored(stored));
  EXPECT_EQ(to_json(to_stored(read)), to_json(stored));
  EXPECT_EQ(read.get<CMAES>().restart, Restart::ipop);
  EXPECT_EQ(read.get<CMAES>().x0, options.x0);
  EXPECT_EQ(read.get<CMAES>().constraints, options.constraints);
}

}  // namespace
}  // namespace cadre::tune
