#include "cadre/tune/searchers/nsga2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/told_searcher.h"
#include "tune/searchers/pareto.h"

namespace cadre::tune {
namespace {

using test_support::cube;
using test_support::message_of;
using test_support::space_of_all_kinds;
using test_support::ToldSearcher;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<Crossover> all_crossovers{Crossover::uniform, Crossover::sbx, Crossover::blx_alpha};
const std::vector<Objective> both{minimize("loss"), maximize("speed")};

double sum_of_squares(const Point& point, double optimum) {
  double sum = 0;
  for (const double x : point) sum += std::isnan(x) ? 0.1 : std::pow(x - optimum, 2);
  return sum;
}

ToldSearcher searcher_of(const NSGA2& options, Space space, std::uint64_t seed = 1) {
  return {options, {.seed = seed, .space = std::move(space), .metric = minimize("loss")}};
}

// The points of the trials from `first` on.
std::vector<Point> points_from(const ToldSearcher& searcher, TrialIndex first, TrialIndex end) {
  std::vector<Point> points;
  for (TrialIndex trial = first; trial < end; ++trial) points.push_back(searcher.point(trial));
  return points;
}

TEST(Nsga2, SuggestionsLieInTheSpace) {
  for (const Crossover crossover : all_crossovers) {
    ToldSearcher searcher = searcher_of({.population_size = 10, .crossover = crossover}, space_of_all_kinds());
    for (int i = 0; i < 200; ++i) {
      TrialIndex trial = 0;
      ASSERT_NO_THROW(trial = searcher.add());
      searcher.end(trial, {{"loss", sum_of_squares(searcher.point(trial), 0.99)}});
    }
  }
}

TEST(Nsga2, FindsABetterPointThanRandomSearch) {
  const auto mean_best = [](const AnySearcher& searcher) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Study study(cube(5), {.metric = minimize("loss"), .searcher = searcher, .seed = seed});
      for (int i = 0; i < 500; ++i) {
        const auto [trial, config] = *study.suggest();
        double loss = 0;
        for (const auto& [key, value] : config.dict()) loss += std::pow(value.get<double>() - 0.3, 2);
        study.observe(trial, {{"loss", loss}});
      }
      sum += *study.result(*study.best()).number("loss") / 5;
    }
    return sum;
  };
  const double random = mean_best(RandomSearch());
  for (const Crossover crossover : all_crossovers) EXPECT_LT(mean_best(NSGA2{.crossover = crossover}), 0.2 * random);
}

// The front of ZDT1 is y = 1 - sqrt(x) where all but the first coordinate are 0.
double hypervolume_of_zdt1(const AnySearcher& options, int trials, std::uint64_t seed) {
  ToldSearcher searcher(options, {.seed = seed, .space = cube(6), .metric = minimize("loss")});
  std::vector<Losses> losses;
  for (int i = 0; i < trials; ++i) {
    const TrialIndex trial = searcher.add();
    const Point point = searcher.point(trial);
    double g = 1;
    for (std::size_t j = 1; j < point.size(); ++j) g += 9 * point[j] / 5;
    losses.push_back({point[0], g * (1 - std::sqrt(point[0] / g))});
    searcher.end(trial, {{"loss", losses.back()[0]}, {"speed", -losses.back()[1]}});
  }
  std::vector<Losses> front;
  for (const std::size_t i : pareto_front(losses)) front.push_back(losses[i]);
  std::ranges::sort(front);
  double volume = 0;
  double upper = 11;
  for (const Losses& point : front) {
    volume += (11 - point[0]) * std::max(0.0, upper - point[1]);
    upper = std::min(upper, point[1]);
  }
  return volume / 121;
}

TEST(Nsga2, FindsTheParetoFrontOfTwoObjectives) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double found = hypervolume_of_zdt1(NSGA2{.metrics = both}, 1000, seed);
    EXPECT_GT(found, 0.98) << "1 - 1/3/121 is the best";
    EXPECT_LT(hypervolume_of_zdt1(QuasiRandom(), 1000, seed), found - 0.03);
  }
}

TEST(Nsga2, TheFirstTrialsAreSpreadEvenly) {
  ToldSearcher searcher = searcher_of({.population_size = 8}, cube(2));
  std::set<int> strata;
  for (int i = 0; i < 8; ++i) {
    const TrialIndex trial = searcher.add();
    strata.insert(static_cast<int>(8 * searcher.point(trial)[0]));
    searcher.end(trial, {{"loss", 1}});
  }
  EXPECT_EQ(strata.size(), 8U);
}

TEST(Nsga2, ChildrenComeFromTheBestTrials) {
  ToldSearcher searcher = searcher_of({.population_size = 4, .mutation_prob = 0, .swapping_prob = 0.5}, cube(2));
  for (int i = 0; i < 20; ++i) {
    const double x = i < 16 ? 0.01 * i : 0.9 + 0.01 * i / 20;
    searcher.end(searcher.add(Config{{"x0", x}, {"x1", 1 - x}}), {{"loss", i < 16 ? 2 : 1}});
  }
  for (int i = 0; i < 20; ++i) {
    const Point child = searcher.point(searcher.add());
    EXPECT_TRUE(child[0] > 0.9 || child[1] < 0.1);
  }
}

TEST(Nsga2, AChildIsNoCopyOfAMemberOrOfAnOpenTrial) {
  Space space;
  for (int i = 0; i < 3; ++i) space.emplace_back("n" + std::to_string(i), randint(0, 6));
  ToldSearcher searcher = searcher_of({.population_size = 5}, space);
  for (int i = 0; i < 5; ++i) {
    const TrialIndex trial = searcher.add();
    searcher.end(trial, {{"loss", sum_of_squares(searcher.point(trial), 0.3)}});
  }
  std::set<Point> open;
  for (int i = 0; i < 30; ++i) open.insert(searcher.point(searcher.add()));
  EXPECT_EQ(open.size(), 30U);
}

TEST(Nsga2, AChildHasWhatExistsUnderItsOwnChoice) {
  const Space space{{"model", choice({Space{{"a", uniform(0, 1)}}, Space{{"b", uniform(0, 1)}}})}};
  ToldSearcher searcher = searcher_of({.population_size = 2, .mutation_prob = 0}, space);
  searcher.end(searcher.add(Config{{"model", Dict{{"a", 0.25}}}}), {{"loss", 1}});
  searcher.end(searcher.add(Config{{"model", Dict{{"b", 0.75}}}}), {{"loss", 1}});
  for (int i = 0; i < 10; ++i) {
    const Config model(searcher.next().at("model"));
    EXPECT_TRUE(model.contains("a") != model.contains("b"));
    searcher.add();
  }
}

// ---- How trials count

// Returns the mean of x0 of children after trials that end as `end` says.
double mean_of_children(const NSGA2& options, const std::function<void(ToldSearcher&, TrialIndex, double)>& end) {
  ToldSearcher searcher = searcher_of(options, cube(2));
  for (int i = 0; i < 300; ++i) {
    const TrialIndex trial = searcher.add();
    end(searcher, trial, searcher.point(trial)[0]);
  }
  double sum = 0;
  for (const Point& point : points_from(searcher, 200, 300)) sum += point[0] / 100;
  return sum;
}

TEST(Nsga2, NanIsTheWorstLoss) {
  EXPECT_LT(mean_of_children({.population_size = 20, .mutation_prob = 0},
                             [](ToldSearcher& searcher, TrialIndex trial, double x) {
                               searcher.end(trial, {{"loss", x > 0.3 ? kNan : -x}});
                             }),
            0.3);
}

TEST(Nsga2, TrialsThatBreakConstraintsComeAfterThoseThatKeepThem) {
  const double mean = mean_of_children(
      {.population_size = 20, .mutation_prob = 0, .constraints = {{.metric = "latency", .at_most = 0.4}}},
      [](ToldSearcher& searcher, TrialIndex trial, double x) { searcher.end(trial, {{"loss", -x}, {"latency", x}}); });
  EXPECT_GT(mean, 0.3);
  EXPECT_LE(mean, 0.4);
}

TEST(Nsga2, TrialsThatASchedulerStoppedComeAfterTheOthers) {
  EXPECT_GT(mean_of_children({.population_size = 20, .mutation_prob = 0},
                             [](ToldSearcher& searcher, TrialIndex trial, double x) {
                               if (x < 0.6) return searcher.end(trial, {{"loss", x}}, TrialStatus::stopped);
                               searcher.end(trial, {{"loss", 1 + x}});
                             }),
            0.6);
}

TEST(Nsga2, FailedTrialsDoNotCount) {
  ToldSearcher searcher = searcher_of({.population_size = 3, .metrics = both}, cube(2));
  searcher.end(searcher.add(), {}, TrialStatus::error);
  searcher.end(searcher.add(), {{"loss", 1}});
  searcher.end(searcher.add(), {{"loss", 1}, {"speed", 1}});
  EXPECT_EQ(searcher.searcher().debug_string(), "NSGA-II: 1 of 3 in the population");
}

// ---- State

void go_on(ToldSearcher& searcher, std::vector<TrialIndex>& open, int steps, std::uint64_t seed) {
  base::RandomStream random(seed, 0, base::Purpose::own);
  for (int i = 0; i < steps; ++i) {
    if (open.size() < 7) {
      open.push_back(searcher.add());
      continue;
    }
    const auto chosen = open.begin() + static_cast<std::ptrdiff_t>(random.below(open.size()));
    const Point point = searcher.point(*chosen);
    const Metrics result{
        {"loss", sum_of_squares(point, 0.2)}, {"speed", -sum_of_squares(point, 0.8)}, {"latency", point[0]}};
    switch (random.below(8)) {
      case 0:
        searcher.end(*chosen, result, TrialStatus::error);
        break;
      case 1:
        searcher.end(*chosen, result, TrialStatus::stopped);
        break;
      case 2:
        searcher.end(*chosen, {{"loss", kNan}, {"speed", kNan}});
        break;
      default:
        searcher.end(*chosen, result);
    }
    open.erase(chosen);
  }
}

TEST(Nsga2, ARestoreGivesTheSameSuggestions) {
  const NSGA2 options{.population_size = 12, .metrics = both, .constraints = {{.metric = "latency", .at_most = 0.6}}};
  ToldSearcher searcher = searcher_of(options, space_of_all_kinds());
  std::vector<TrialIndex> open;
  for (std::uint64_t moment = 0; moment < 8; ++moment) {
    go_on(searcher, open, 13 + static_cast<int>(moment) * 11, moment);
    ToldSearcher again = searcher.restored();
    ASSERT_EQ(again.next(), searcher.next());
    std::vector<TrialIndex> also_open = open;
    go_on(again, also_open, 40, 100 + moment);
    go_on(searcher, open, 40, 100 + moment);
    ASSERT_EQ(again.next(), searcher.next()) << "moment " << moment;
  }
}

TEST(Nsga2, AStateOfOtherTrialsIsRefused) {
  const SearcherSetting setting{.space = cube(2), .metric = minimize("loss")};
  EXPECT_THROW(NSGA2().make(setting)->load(list(3)), InvalidArgument);
}

// ---- Options

TEST(Nsga2, BadOptionsAreNamed) {
  const auto fault = [](const NSGA2& searcher) {
    return message_of<InvalidArgument>([&] { Study(cube(2), {.metric = minimize("loss"), .searcher = searcher}); });
  };
  EXPECT_THAT(fault({.population_size = 1}),
              HasSubstr("searcher (NSGA2) population_size: it is 1; it must be from 2 to 100000"));
  EXPECT_THAT(fault({.mutation_prob = 1.5}), HasSubstr("(NSGA2) mutation_prob: it is 1.5; it must be from 0 to 1"));
  EXPECT_THAT(fault({.crossover_prob = -1}), HasSubstr("(NSGA2) crossover_prob: it is -1"));
  EXPECT_THAT(fault({.swapping_prob = kNan}), HasSubstr("(NSGA2) swapping_prob: it is nan"));
  EXPECT_THAT(fault({.metrics = {"loss"}}), HasSubstr("(NSGA2) metrics: \"loss\" has no direction"));
  EXPECT_THAT(fault({.metrics = {minimize("")}}), HasSubstr("(NSGA2) metrics: one of them has no name"));
  EXPECT_THAT(fault({.metrics = {minimize("a"), maximize("a")}}), HasSubstr("(NSGA2) metrics: \"a\" is there twice"));
  EXPECT_THAT(fault({.constraints = {{.metric = "a", .at_most = kNan}}}),
              HasSubstr("(NSGA2) constraints[0]: its at_most is nan"));
  EXPECT_EQ(fault({.metrics = both}), "nothing was thrown");
}

TEST(Nsga2, IsStoredAndReadBack) {
  AnySearcher read;
  const NSGA2 options{.population_size = 7, .crossover = Crossover::sbx, .metrics = both};
  const Value stored = to_stored(AnySearcher(options));
  read_stored(read, Stored(stored));
  EXPECT_EQ(to_json(to_stored(read)), to_json(stored));
  EXPECT_EQ(read.get<NSGA2>().metrics, both);
  EXPECT_EQ(read.get<NSGA2>().crossover, Crossover::sbx);
}

}  // namespace
}  // namespace cadre::tune
