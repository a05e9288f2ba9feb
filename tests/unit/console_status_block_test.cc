#include "tune/console/status_block.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

namespace cadre::tune::console {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using view::Line;
using view::Lines;
using view::Span;
using view::Style;

constexpr double kNow = 1700000000;
const Focus kFocus{.metric = "score", .mode = Mode::max, .mutated = {"lr", "act"}};

Trial trial_at(TrialIndex index, TrialStatus status, std::int64_t iteration = 0, double score = 0) {
  Trial trial;
  trial.index = index;
  trial.id = fmt::format("{:05d}", index);
  trial.sampled = {{"lr", 0.5}};
  trial.config = {{"lr", 0.1 * (1 + index)}, {"act", "relu"}, {"data", "/mnist"}};
  trial.status = status;
  trial.attempt = status == TrialStatus::pending ? 0 : 1;
  if (iteration == 0) return trial;
  trial.checkpoints_made = iteration / 5;
  trial.last_result = {{"loss", 1 - score},
                       {"score", score},
                       {"training_iteration", iteration},
                       {"trial_id", trial.id},
                       {"timestamp", static_cast<std::int64_t>(kNow) - 60 * index},
                       {"time_this_iter_s", 0.25},
                       {"time_total_s", 0.25 * static_cast<double>(iteration)},
                       {"pid", 17},
                       {"iterations_since_restore", iteration},
                       {"eval", {{"accuracy", score / 2}, {"note", "words"}}}};
  return trial;
}

std::vector<Trial> trials_of(std::int64_t count, TrialStatus status) {
  std::vector<Trial> trials;
  for (TrialIndex index = 0; index < count; ++index) trials.push_back(trial_at(index, status, 10, 0.001 * index));
  return trials;
}

ExperimentView view_of(const std::vector<Trial>& trials, std::int64_t to_come = 0) {
  return {trials, to_come, "2/4 CPUs, 0/0 GPUs", "PopulationBasedTraining: 1 exploits"};
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const Line& line : lines) text += plain_text(line) + "\n";
  return text;
}

class StatusBlock : public ::testing::Test {
 protected:
  // Sets the time zone, because times are shown in local time.
  void SetUp() override {
    if (const char* zone = std::getenv("TZ")) zone_before_ = zone;
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  void TearDown() override {
    zone_before_ ? ::setenv("TZ", zone_before_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }

  static Page ascii(std::size_t width) { return {.width = width, .encoding = base::Encoding::ascii}; }
  static Page window(std::size_t width, std::size_t lines) {
    return {.width = width, .lines = lines, .encoding = base::Encoding::ascii};
  }
  static std::string tables(const std::vector<Trial>& trials, const Page& page, std::int64_t to_come = 0) {
    const ExperimentView view = view_of(trials, to_come);
    return text_of(format_tables(view, overview_of(view, kFocus), kFocus, kNow, page));
  }
  static std::string summary(const std::vector<Trial>& trials, const Moment& moment, const Page& page) {
    const ExperimentView view = view_of(trials);
    return text_of(format_summary(view, overview_of(view, kFocus), kFocus, moment, page));
  }

  const std::vector<Trial> population_{trial_at(0, TrialStatus::running, 10, 0.5),
                                       trial_at(1, TrialStatus::paused, 15, 0.75),
                                       trial_at(2, TrialStatus::terminated, 20, 0.625),
                                       trial_at(3, TrialStatus::error, 5, 0.25), trial_at(4, TrialStatus::pending)};

 private:
  std::optional<std::string> zone_before_;
};

TEST_F(StatusBlock, SummaryOfAPopulation) {
  const Moment moment{.wall_seconds = kNow,
                      .running_seconds = 3725,
                      .sessions = 2,
                      .memory = resources::MemoryUsage{std::uint64_t{3} << 29, std::uint64_t{15} << 30, 300 << 20}};
  EXPECT_EQ(summary(population_, moment, ascii(120)),
            "Trial status: 1 RUNNING | 1 TERMINATED | 1 PAUSED | 1 PENDING | 1 ERROR\n"
            "Current time: 2023-11-14 22:13:20. Total running time: 1hr 2min 5s in 2 sessions\n"
            "Logical resources: 2/4 CPUs, 0/0 GPUs. Memory: 1.5 GiB of 15.0 GiB (300 MiB ours)\n"
            "PopulationBasedTraining: 1 exploits\n"
            "Current best trial: 00001 with score=0.75 and params={\"lr\": 0.2, \"act\": \"relu\"}\n");
}

TEST_F(StatusBlock, TheStateOfASearcherIsBelowTheSchedulers) {
  ExperimentView view = view_of(population_);
  view.searcher_state = "TPE: configs are\x1b random";
  EXPECT_THAT(text_of(format_summary(view, overview_of(view, kFocus), kFocus, {}, ascii(120))),
              HasSubstr("\nPopulationBasedTraining: 1 exploits\nTPE: configs are\\x1b random\nCurrent best trial"));
}

TEST_F(StatusBlock, ASummarySaysThatTheExperimentIsPaused) {
  EXPECT_THAT(summary(population_, {.wall_seconds = kNow, .running_seconds = 5, .is_paused = true}, ascii(120)),
              HasSubstr("Total running time: 5.0s; paused until `cadre resume`\n"));
}

TEST_F(StatusBlock, TablesOfAPopulation) {
  EXPECT_EQ(tables(population_, ascii(120)),
            "+- Trials ------------------------------------------------------------------------+\n"
            "| Trial  status       lr  act   iter  total time (s)  score   loss  eval/accuracy |\n"
            "+---------------------------------------------------------------------------------+\n"
            "| 00000  RUNNING     0.1  relu    10           2.500    0.5    0.5           0.25 |\n"
            "| 00002  TERMINATED  0.3  relu    20           5.000  0.625  0.375         0.3125 |\n"
            "| 00001  PAUSED      0.2  relu    15           3.750   0.75   0.25          0.375 |\n"
            "| 00004  PENDING     0.5  relu                                                    |\n"
            "| 00003  ERROR       0.4  relu     5           1.250   0.25   0.75          0.125 |\n"
            "+---------------------------------------------------------------------------------+\n"
            "+- Trial progress -----------------------------------------------------------------+\n"
            "| Trial  since restore  iter time (s)  last report  checkpoints  attempt  failures |\n"
            "+----------------------------------------------------------------------------------+\n"
            "| 00000             10          0.250     22:13:20            2        1         0 |\n"
            "| 00002             20          0.250     22:11:20            4        1         0 |\n"
            "| 00001             15          0.250     22:12:20            3        1         0 |\n"
            "| 00004                                                       0        0         0 |\n"
            "| 00003              5          0.250     22:10:20            1        1         0 |\n"
            "+----------------------------------------------------------------------------------+\n");
}

TEST_F(StatusBlock, BoxesAreDrawnInUtf8) {
  EXPECT_THAT(tables({trial_at(0, TrialStatus::pending)}, {.width = 120}),
              StartsWith("╭─ Trials ───────────────────────────────────────────────╮\n"
                         "│ Trial  status    lr  act   iter  total time (s)  score │\n"));
}

TEST_F(StatusBlock, BeforeThereAreTrialsThereIsASummaryOnly) {
  const std::vector<Trial> none;
  const ExperimentView view = view_of(none, 4);
  const Overview overview = overview_of(view, kFocus);
  EXPECT_EQ(plain_text(format_summary(view, overview, kFocus, {}, {})[0]), "Trial status: 4 PENDING");
  EXPECT_EQ(format_summary(view, overview, kFocus, {}, {}).size(), 4u);
  EXPECT_THAT(format_tables(view, overview, kFocus, 0, {}), IsEmpty());
}

TEST_F(StatusBlock, OfAHundredTrialsEachStatusHasItsShareAndTheBestIsThere) {
  std::vector<Trial> trials = trials_of(100, TrialStatus::terminated);  // the last one is the best
  for (TrialIndex i = 0; i < 4; ++i) trials[i].status = TrialStatus::running;
  for (TrialIndex i = 4; i < 30; ++i) trials[i].status = TrialStatus::error;
  const ExperimentView view = view_of(trials, 50);
  const Selection selection = select_trials(view, overview_of(view, kFocus), 20);
  EXPECT_THAT(selection.rows, ElementsAre(0, 1, 2, 3, 30, 31, 32, 33, 34, 35, 36, 99, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(selection.hidden, ElementsAre(0, 62, 0, 0, 50, 18));
  const std::string text = tables(trials, ascii(120), 50);
  EXPECT_THAT(text, HasSubstr("\n... 62 more TERMINATED, 50 more PENDING, 18 more ERROR\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 * (4 + 20 + 1));
}

TEST_F(StatusBlock, TheBestIsShownEvenWhereItsStatusHasNoShare) {
  std::vector<Trial> trials = trials_of(3, TrialStatus::running);
  trials.push_back(trial_at(3, TrialStatus::error, 1, 0.9));
  const ExperimentView view = view_of(trials);
  EXPECT_THAT(select_trials(view, overview_of(view, kFocus), 1).rows, ElementsAre(3));
}

TEST_F(StatusBlock, InTheLastTableTheBestComeFirstAndThoseWithoutTheMetricLast) {
  std::vector<Trial> trials = trials_of(6, TrialStatus::terminated);
  for (std::size_t i = 0; i < trials.size(); ++i) trials[i].last_result.set("score", static_cast<double>(i % 3));
  trials[1].last_result.set("score", std::nan(""));
  trials[2].status = TrialStatus::error;
  trials[3].last_result = {};
  trials[3].status = TrialStatus::error;
  const ExperimentView view = view_of(trials, 5);
  const auto ranked = [&](Mode mode, std::size_t maximum) {
    return rank_trials(view, overview_of(view, kFocus), {.metric = "score", .mode = mode}, maximum);
  };
  EXPECT_THAT(ranked(Mode::max, 20).rows, ElementsAre(2, 5, 4, 0, 1, 3));
  EXPECT_THAT(ranked(Mode::min, 20).rows, ElementsAre(0, 4, 2, 5, 1, 3));
  EXPECT_THAT(ranked(Mode::max, 2).rows, ElementsAre(2, 5));
  EXPECT_THAT(ranked(Mode::max, 2).hidden, ElementsAre(0, 3, 0, 0, 5, 1));
  const Lines lines = format_tables(view, overview_of(view, kFocus), kFocus, kNow, {.width = 120, .ranked = true});
  EXPECT_THAT(plain_text(lines[3]), HasSubstr(" 00002 "));
  EXPECT_THAT(plain_text(lines[4]), HasSubstr(" 00005 "));
}

TEST_F(StatusBlock, TheBestIsBold) {
  const ExperimentView view = view_of(population_);
  const Lines lines = format_tables(view, overview_of(view, kFocus), kFocus, kNow, {.width = 120});
  const auto bold = [&](std::size_t line) {
    std::vector<std::string> texts;
    for (const Span& span : lines[line]) {
      if (span.style == Style::bold) texts.push_back(span.text);
    }
    return texts;
  };
  EXPECT_THAT(bold(5), ElementsAre("00001", "0.75"));
  EXPECT_THAT(bold(3), IsEmpty());
}

TEST_F(StatusBlock, WithModeMinTheLowestIsTheBestAndNaNNever) {
  std::vector<Trial> trials = trials_of(4, TrialStatus::running);
  trials[0].last_result.set("score", std::nan(""));
  trials[1].last_result.set("score", "a word");
  EXPECT_EQ(overview_of(view_of(trials), {.metric = "score", .mode = Mode::min}).best, 2u);
  EXPECT_EQ(overview_of(view_of(trials), {.metric = "unknown"}).best, std::nullopt);
}

TEST_F(StatusBlock, InANarrowWindowColumnsAreLeftOutAndTheMetricStays) {
  EXPECT_THAT(tables(population_, window(60, 40)), StartsWith("+- Trials ----------------------------------+\n"
                                                              "| Trial  status       lr  act   iter  score |\n"));
  EXPECT_THAT(tables(population_, window(30, 40)), StartsWith("+- Trials -----------------+\n"
                                                              "| Trial  status      score |\n"));
}

TEST_F(StatusBlock, NoLineIsWiderThanTheWindow) {
  for (std::size_t width = 1; width < 130; ++width) {
    for (const base::Encoding encoding : {base::Encoding::ascii, base::Encoding::utf8}) {
      const Page page{.width = width, .lines = 40, .encoding = encoding};
      const ExperimentView view = view_of(population_);
      const Overview overview = overview_of(view, kFocus);
      for (const Lines& lines :
           {format_summary(view, overview, kFocus, {}, page), format_tables(view, overview, kFocus, kNow, page)}) {
        for (const Line& line : lines) ASSERT_LE(display_width(line), width) << plain_text(line);
      }
    }
  }
}

TEST_F(StatusBlock, NoBlockIsHigherThanTheWindow) {
  const std::vector<Trial> many = trials_of(30, TrialStatus::running);
  for (std::size_t lines = 0; lines < 60; ++lines) {
    const std::string text = tables(many, window(80, lines));
    EXPECT_LE(static_cast<std::size_t>(std::ranges::count(text, '\n')), lines);
    EXPECT_EQ(lines >= 6, text.find("more RUNNING") != text.npos) << lines;
  }
  EXPECT_EQ(std::ranges::count(tables(population_, window(80, 9)), '\n'), 9);    // one table
  EXPECT_EQ(std::ranges::count(tables(population_, window(80, 18)), '\n'), 18);  // both
}

TEST_F(StatusBlock, HostileNamesAndValuesAreShownHarmlessly) {
  const std::string hostile = "evil\x1b[2J\n\x07\xff\xe2\x80\xae";
  std::vector<Trial> trials = trials_of(2, TrialStatus::running);
  for (Trial& trial : trials) {
    trial.sampled.emplace_back(hostile, hostile);
    trial.config.set(hostile, hostile);
    trial.last_result.set(hostile + "2", 1);
    trial.last_result.set("score", 1);
  }
  const Focus focus{.metric = hostile + "2"};
  const ExperimentView view = view_of(trials);
  const Overview overview = overview_of(view, focus);
  const std::string text = text_of(format_summary(view, overview, focus, {}, {})) +
                           text_of(format_tables(view, overview, focus, kNow, {.width = 200}));
  EXPECT_THAT(text, HasSubstr(" with evil\\x1b[2J\\n\\x07\\xff\\u{202e}2=1 and params="));
  for (const std::string part : {"\x1b", "\x07", "\xff", "\xe2\x80\xae"}) EXPECT_THAT(text, Not(HasSubstr(part)));
}

TEST_F(StatusBlock, LongTextsLoseTheirBeginningAndNumbersNothing) {
  std::vector<Trial> trials = trials_of(1, TrialStatus::running);
  trials[0].config.set("act", "a_very_long_name_of_a_function");
  trials[0].last_result.set("loss", std::int64_t{1} << 62);
  const std::string text = tables(trials, ascii(120));
  EXPECT_THAT(text, HasSubstr("  ...ame_of_a_function  "));
  EXPECT_THAT(text, HasSubstr("  4611686018427387904  "));
}

TEST_F(StatusBlock, OfThousandsOfMetricsSomeAreShown) {
  std::vector<Trial> trials = trials_of(2, TrialStatus::running);
  for (int i = 0; i < 10000; ++i) trials[0].last_result.set(fmt::format("metric_{:05d}", i), i);
  const ExperimentView view = view_of(trials);
  const Selection selection = select_trials(view, overview_of(view, kFocus), 20);
  EXPECT_EQ(metrics_of(view, selection, kFocus, {}).size(), 32u);
}

TEST_F(StatusBlock, DurationsAreInTheUnitsThatTheyNeed) {
  EXPECT_EQ(duration_text(-1), "0.0s");
  EXPECT_EQ(duration_text(12.34), "12.3s");
  EXPECT_EQ(duration_text(125), "2min 5s");
  EXPECT_EQ(duration_text(3600), "1hr 0min 0s");
  EXPECT_EQ(duration_text(3 * 86400 + 3725), "3d 1hr 2min 5s");
}

}  // namespace
}  // namespace cadre::tune::console
