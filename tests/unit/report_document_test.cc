#include "report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>

#include "base/random.h"
#include "report/curves.h"
#include "report/kept_rows.h"
#include "tune/results/result_rows.h"

namespace cadre::report {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using tune::Result;
using tune::ResultGrid;
using tune::TrialStatus;

// ---- Rows of long curves

std::vector<double> wave(std::size_t rows) {
  std::vector<double> values(rows);
  for (std::size_t row = 0; row < rows; ++row) values[row] = std::sin(static_cast<double>(row) / 50);
  return values;
}

TEST(KeptRows, AreAllOfAShortCurve) {
  const std::vector<std::vector<double>> columns{wave(5)};
  EXPECT_THAT(kept_rows(columns, 5, {}, 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(kept_rows({}, 0, {}, 5), ElementsAre());
}

TEST(KeptRows, HaveEveryPeakOfALongCurve) {
  std::vector<std::vector<double>> columns{wave(10'000)};
  columns[0][7001] = 50;
  columns[0][3003] = -50;
  const std::vector<std::size_t> kept = kept_rows(columns, 10'000, {1234}, 100);
  EXPECT_THAT(kept, IsSupersetOf({0U, 1234U, 3003U, 7001U, 9999U}));
  EXPECT_LE(kept.size(), 103);
  EXPECT_GE(kept.size(), 50);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
}

TEST(KeptRows, HavePeaksOfFurtherColumnsAsFarAsTheLimitAllows) {
  std::vector<std::vector<double>> columns{wave(10'000), wave(10'000)};
  columns[1][5005] = 9;
  EXPECT_THAT(kept_rows(columns, 10'000, {}, 100), Contains(5005));
  EXPECT_LE(kept_rows(columns, 10'000, {}, 100).size(), 102);
}

TEST(KeptRows, PassOverGaps) {
  const std::vector<std::vector<double>> columns{std::vector<double>(1000, std::nan(""))};
  EXPECT_THAT(kept_rows(columns, 1000, {}, 10), ElementsAre(0, 999));
}

// ---- Samples of many trials

TEST(SampledTrials, AreAllUpToTheLimit) {
  EXPECT_THAT(sampled_trials(std::vector<std::optional<double>>(3), {}, 3), ElementsAre(0, 1, 2));
}

TEST(SampledTrials, HaveTheBestHalfWhatIsNeededAndOthersAtEqualDistances) {
  std::vector<std::optional<double>> losses(1000);
  for (std::size_t i = 0; i < losses.size(); ++i) losses[i] = static_cast<double>((i * 37) % 1000);
  losses[10] = {};
  const std::vector<std::size_t> sampled = sampled_trials(losses, {10, 500}, 100);
  EXPECT_THAT(sampled, SizeIs(100));
  EXPECT_THAT(sampled, IsSupersetOf({10U, 500U}));
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] && *losses[i] < 45) EXPECT_THAT(sampled, Contains(i));
  }
  EXPECT_TRUE(std::ranges::any_of(sampled, [](std::size_t i) { return i > 900; }));
}

// ---- Documents

Metrics result(std::int64_t iteration, double score) {
  return {{"score", score}, {"eval", {{"loss", 1 - score}}},   {"name", "text"},
          {"pid", 1},       {"training_iteration", iteration}, {"time_total_s", static_cast<double>(iteration) / 2}};
}

Result trial(const std::string& id, std::vector<double> scores) {
  Result made{.trial_id = id, .status = TrialStatus::terminated, .path = "/somewhere/" + id};
  tune::detail::ResultRows rows;
  for (const double score : scores)
    rows.results.push_back(result(static_cast<std::int64_t>(rows.results.size()) + 1, score));
  if (!rows.results.empty()) made.metrics = rows.results.back();
  made.config = made.drawn_config = Config{{"lr", 0.1}, {"layers", list(1, 2)}};
  made.rows = std::make_shared<const tune::detail::ResultRows>(std::move(rows));
  return made;
}

Value document(const ResultGrid& results, std::vector<std::string> parameters = {"lr"}) {
  return document_of({.results = results,
                      .parameters = std::move(parameters),
                      .options = {{"scheduler", "FIFO"}},
                      .place = [](const std::filesystem::path& path) { return "at " + path.string(); },
                      .last_errors = [](const Result& one) { return one.error ? "last words of " + one.trial_id : ""; },
                      .read = 5});
}

const Value& at(const Value& value, std::string_view key) {
  const Value* const found = find_entry(value.dict(), key);
  if (found == nullptr) throw NotFound("the document has no " + std::string(key));
  return *found;
}

Value column(const Value& document, const std::string& name) {
  for (const Value& one : at(document, "columns").items()) {
    if (at(one, "name") == Value(name)) return at(one, "cells");
  }
  throw NotFound("no column " + name);
}

TEST(ReportDocument, HasColumnsOfAllTrials) {
  const ResultGrid results("/somewhere", {trial("00000", {0.25, 0.5}), trial("00001", {0.75}), trial("00002", {})},
                           maximize("score"));
  const Value made = document(results);
  EXPECT_EQ(at(made, "version"), Value(kDocumentVersion));
  EXPECT_EQ(at(made, "kind"), Value("experiment"));
  EXPECT_EQ(at(made, "path"), Value("at /somewhere"));
  EXPECT_EQ(at(made, "metric"), Value("score"));
  EXPECT_EQ(at(made, "mode"), Value("max"));
  EXPECT_EQ(at(made, "best"), Value(1));
  EXPECT_EQ(at(made, "trials_in_all"), Value(3));
  EXPECT_EQ(at(at(made, "trials"), "id"), list("00000", "00001", "00002"));
  EXPECT_EQ(at(at(made, "trials"), "results"), list(2, 1, 0));
  EXPECT_EQ(column(made, "score"), list(0.5, 0.75, Value()));
  EXPECT_EQ(column(made, "eval/loss"), list(0.5, 0.25, Value()));
  EXPECT_EQ(column(made, "lr"), list(0.1, 0.1, 0.1));
  EXPECT_THROW(column(made, "name"), NotFound);
  EXPECT_THROW(column(made, "pid"), NotFound);
}

TEST(ReportDocument, HasCurvesAsColumns) {
  const double nan = std::nan("");
  const ResultGrid results("/somewhere", {trial("00000", {0.25, nan, 0.5}), trial("00001", {})}, maximize("score"));
  const Value curves = at(document(results), "curves");
  EXPECT_EQ(at(curves, "names"), list("score", "training_iteration", "time_total_s", "eval/loss"));
  const List& trials = at(curves, "trials").items();
  EXPECT_EQ(to_json(trials[0]),
            R"([[3], [0.25, null, 0.5], {"from": 1, "count": 3}, [0.5, 1.0, 1.5], [0.75, null, 0.5]])");
  EXPECT_EQ(trials[1], Value());
  EXPECT_EQ(at(curves, "reduced"), Value(0));
}

TEST(ReportDocument, SaysWhichCurvesAreThinnedOut) {
  std::vector<double> scores = wave(5000);
  scores[4321] = 77;
  const ResultGrid results("/somewhere", {trial("00000", scores), trial("00001", {0.5})}, maximize("score"));
  const Value curves = at(document(results), "curves");
  EXPECT_EQ(at(curves, "reduced"), Value(1));
  const List& kept = at(curves, "trials").items()[0].items()[1].items();
  EXPECT_LE(kept.size(), Curves::kMostRows + 2);
  EXPECT_THAT(kept, Contains(Value(77.0)));
}

TEST(ReportDocument, HasASampleOfMoreTrialsThanThePageCanShow) {
  std::vector<Result> trials;
  for (std::size_t i = 0; i < kMostTrials + 50; ++i) {
    trials.push_back({.trial_id = std::to_string(i), .metrics = {{"score", static_cast<double>(i)}}});
    trials.back().status = TrialStatus::terminated;
  }
  const Value made = document(ResultGrid("/somewhere", std::move(trials), minimize("score")));
  EXPECT_EQ(at(made, "trials_in_all"), Value(kMostTrials + 50));
  EXPECT_EQ(at(at(made, "trials_by_status"), "TERMINATED"), Value(kMostTrials + 50));
  EXPECT_EQ(at(made, "best"), Value(0));
  EXPECT_THAT(at(at(made, "trials"), "id").items(), SizeIs(kMostTrials));
  EXPECT_THAT(at(at(made, "curves"), "trials").items(), SizeIs(kMostTrials));
}

TEST(ReportDocument, HasNoBestTrialWithoutADirectionOrAValue) {
  EXPECT_EQ(at(document(ResultGrid("/somewhere", {trial("00000", {0.5})}, Objective("score"))), "best"), Value());
  EXPECT_EQ(at(document(ResultGrid("/somewhere", {trial("00000", {std::nan("")})}, maximize("score"))), "best"),
            Value());
  EXPECT_EQ(at(document(ResultGrid("/somewhere", {}, Objective())), "best"), Value());
}

TEST(ReportDocument, SaysWhyThereIsNoImportance) {
  const auto reason = [](const Objective& metric) {
    const ResultGrid results("/somewhere", {trial("00000", {0.5})}, metric);
    return at(at(document(results), "importance"), "reason").get<std::string>();
  };
  EXPECT_THAT(reason(maximize("score")), HasSubstr("the search space of somewhere is not known"));
  EXPECT_THAT(reason(Objective()), HasSubstr("no metric"));
}

TEST(ReportDocument, HasFailuresWithTheirLastLines) {
  Result failed = trial("00001", {0.5});
  failed.status = TrialStatus::error;
  failed.error = "out of luck";
  failed.failures = 2;
  Result recovered = trial("00002", {0.5});
  recovered.failures = 1;
  const ResultGrid results("/somewhere", {trial("00000", {0.5}), failed, recovered}, maximize("score"));
  const Value failures = at(document(results), "failures");
  EXPECT_EQ(at(failures, "in_all"), Value(2));
  const List& items = at(failures, "items").items();
  ASSERT_EQ(items.size(), 2);
  EXPECT_EQ(at(items[0], "id"), Value("00001"));
  EXPECT_EQ(at(items[0], "error"), Value("out of luck"));
  EXPECT_EQ(at(items[0], "last_lines"), Value("last words of 00001"));
  EXPECT_EQ(at(items[1], "error"), Value());
  EXPECT_EQ(at(items[1], "last_lines"), Value());
}

TEST(ReportDocument, KeepsTheFirstFailuresAndCountsAll) {
  std::vector<Result> trials;
  for (std::size_t i = 0; i < kMostFailures + 5; ++i) {
    trials.push_back(trial(std::to_string(i), {}));
    trials.back().error = "broken";
  }
  const Value failures = at(document(ResultGrid("/somewhere", std::move(trials), Objective())), "failures");
  EXPECT_EQ(at(failures, "in_all"), Value(kMostFailures + 5));
  EXPECT_THAT(at(failures, "items").items(), SizeIs(kMostFailures));
}

// Trial 1 has continued from trial 0's second result with another lr, and reported twice before and once after that.
ResultGrid with_an_exploit() {
  Result donor = trial("00000", {0.5, 0.6, 0.7});
  Result receiver = trial("00001", {0.1, 0.2, 0.65});
  tune::detail::ResultRows rows = *receiver.rows;
  rows.donors = {12};
  receiver.rows = std::make_shared<const tune::detail::ResultRows>(rows);
  receiver.config = Config{{"lr", 0.2}};
  receiver.exploits = {{.training_iteration = 2,
                        .first_result = 2,
                        .donor = "00000",
                        .donor_iteration = 2,
                        .checkpoint = donor.path / "checkpoint_000001",
                        .config = receiver.config,
                        .changes = {{"lr", 0.1, "* 2", 0.2}}}};
  return {"/somewhere", {std::move(donor), std::move(receiver)}, maximize("score")};
}

TEST(ReportDocument, HasExploitsWithWhatTheyChanged) {
  const Value made = document(with_an_exploit());
  const List& exploits = at(made, "exploits").items();
  ASSERT_EQ(exploits.size(), 1);
  EXPECT_EQ(at(exploits[0], "trial"), Value(1));
  EXPECT_EQ(at(exploits[0], "iteration"), Value(2));
  EXPECT_EQ(at(exploits[0], "donor_iteration"), Value(2));
  EXPECT_EQ(at(exploits[0], "changes"), list(list("lr", 0.1, "* 2", 0.2)));
  EXPECT_EQ(at(exploits[0], "parameters"), list(0.2));
  const Value& parameter = at(made, "columns").items()[0];
  EXPECT_EQ(at(parameter, "explored"), Value(true));
  EXPECT_EQ(at(parameter, "cells"), list(0.1, 0.2));
  EXPECT_EQ(at(parameter, "drawn"), list(0.1, 0.1));
  EXPECT_EQ(at(at(made, "curves"), "trials").items()[1].items()[0], list(2, 1));
}

TEST(ReportDocument, FindsTheResultThatAnExploitContinuedFrom) {
  ResultGrid results = with_an_exploit();
  std::vector<Result> trials(results.begin(), results.end());
  tune::detail::ResultRows rows;
  rows.own = {10, 12, 17};
  trials[0].rows = std::make_shared<const tune::detail::ResultRows>(rows);
  const auto origins = origins_of(ResultGrid("/somewhere", trials, maximize("score")));
  EXPECT_THAT(origins[0], SizeIs(0));
  ASSERT_THAT(origins[1], SizeIs(1));
  EXPECT_EQ(origins[1][0].trial, 0);
  EXPECT_EQ(origins[1][0].result, 1);
  EXPECT_EQ(origins[1][0].segment, 0);
}

TEST(ReportDocument, AnExploitOfAMissingTrialHasNoOrigin) {
  const ResultGrid results = with_an_exploit();
  std::vector<Result> trials(results.begin() + 1, results.end());
  const auto origins = origins_of(ResultGrid("/somewhere", trials, maximize("score")));
  EXPECT_EQ(origins[0][0].trial, 0);
  EXPECT_EQ(origins[0][0].result, CurveOrigin::kNoResult);
}

TEST(ReportDocument, OfManyCheckpointsHasThoseOfTheBestTrialsInTheOrderOfTrials) {
  constexpr auto kOfEach = static_cast<std::int64_t>(kMostCheckpoints * 2 / 5);
  std::vector<Result> trials;
  for (const double score : {0.2, 0.3, 0.1, 0.9}) {
    trials.push_back(trial(std::to_string(trials.size()), {score}));
    for (std::int64_t i = 0; i < kOfEach; ++i)
      trials.back().best_checkpoints.emplace_back(Checkpoint::from_directory("/somewhere/checkpoint"), Metrics());
  }
  const Value made = at(document(ResultGrid("/somewhere", std::move(trials), maximize("score"))), "checkpoints");
  EXPECT_EQ(at(made, "in_all"), Value(4 * kOfEach));
  const List& owners = at(made, "trial").items();
  EXPECT_THAT(owners, SizeIs(kMostCheckpoints));
  const auto count_of = [&](int owner) {
    return std::ranges::count_if(owners, [&](const Value& one) { return one == Value(owner); });
  };
  EXPECT_EQ(count_of(0), kOfEach / 2);
  EXPECT_EQ(count_of(1), kOfEach);
  EXPECT_EQ(count_of(3), kOfEach);
  EXPECT_EQ(owners.front(), Value(0));
  EXPECT_EQ(owners.back(), Value(3));
}

TEST(ReportDocument, OfATrainingRunHasItsTimeline) {
  const ResultGrid results("/somewhere", {trial("run", {0.5})}, Objective());
  using Kind = train::TimelineSpan::Kind;
  const Source source{
      .results = results,
      .place = [](const std::filesystem::path& path) { return path.string(); },
      .last_errors = [](const Result&) { return "Attempt 1: out of luck"; },
      .run =
          RunParts{.status = "FINISHED",
                   .attempts = 2,
                   .checkpoints = {{.checkpoint = Checkpoint::from_directory("/somewhere/checkpoint_000001"),
                                    .metrics = {{"loss", 0.5}},
                                    .validation_metrics = {{"accuracy", std::nan("")}},
                                    .validation_error = "too late"}},
                   .timeline = {
                       .duration = 2, .reports = {0.5}, .lanes = {{"training", {{Kind::failed, 0, 1, "attempt 1"}}}}}}};
  const Value made = document_of(source);
  EXPECT_EQ(at(made, "kind"), Value("training_run"));
  EXPECT_EQ(to_json(at(at(made, "run"), "lanes")),
            R"([{"name": "training", "spans": [["failed", 0.0, 1.0, "attempt 1"]]}])");
  const Value& checkpoints = at(made, "checkpoints");
  EXPECT_EQ(at(checkpoints, "path"), list("/somewhere/checkpoint_000001"));
  EXPECT_EQ(at(checkpoints, "validation_error"), list("too late"));
  EXPECT_EQ(to_json(at(checkpoints, "validation")), R"([{"accuracy": {"number": "NaN"}}])");
  EXPECT_EQ(at(at(made, "failures"), "in_all"), Value(1));
}

TEST(ReportDocument, OfALongTrainingRunHasItsBestCheckpointsAndTheBeginningOfItsTimeline) {
  const ResultGrid results("/somewhere", {trial("run", {0.5})}, maximize("score"));
  const auto count = static_cast<std::int64_t>(std::max(kMostCheckpoints, kMostSpans)) + 5;
  RunParts run{.status = "RUNNING", .timeline = {.duration = 1, .lanes = {{"uploads", {}}}}};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(i);
    run.checkpoints.push_back(
        {.checkpoint = Checkpoint::from_directory("/somewhere/" + std::to_string(i)), .metrics = {{"score", number}}});
    run.timeline.reports.push_back(number);
    run.timeline.lanes[0].spans.push_back({train::TimelineSpan::Kind::upload, number, number + 1, "upload"});
  }
  const Value made = document_of({.results = results,
                                  .place = [](const std::filesystem::path& path) { return path.string(); },
                                  .last_errors = [](const Result&) { return ""; },
                                  .run = std::move(run)});
  const Value& checkpoints = at(made, "checkpoints");
  EXPECT_EQ(at(checkpoints, "in_all"), Value(count));
  for (const char* const key : {"trial", "path", "iteration", "value", "status", "validation_error", "validation"})
    EXPECT_THAT(at(checkpoints, key).items(), SizeIs(kMostCheckpoints)) << key;
  EXPECT_EQ(at(checkpoints, "value").items().back(), Value(static_cast<double>(count - 1)));
  const Value& timeline = at(made, "run");
  EXPECT_THAT(at(timeline, "reports").items(), SizeIs(kMostSpans));
  EXPECT_EQ(at(timeline, "reports").items().front(), Value(0.0));
  EXPECT_THAT(at(at(timeline, "lanes").items()[0], "spans").items(), SizeIs(kMostSpans));
}

// ---- Experiments that grow

TEST(GrowingDocument, IsTheOneOfAnExperimentThatIsReadAtOnce) {
  base::RandomStream random(3, 0, base::Purpose::own);
  CurveReader curves;
  // So many trials that each new one leaves less room for the curves of the others. The first ones report.
  std::vector<std::vector<double>> scores(186);
  std::vector<std::vector<std::size_t>> exploited(186);  // results before which a trial has exploited the one before it
  for (int step = 0; step < 40; ++step) {
    if (random.below(2) == 0) {
      scores.emplace_back();
      exploited.emplace_back();
    }
    for (std::size_t i = 0; i < 8; ++i) {
      if (i > 0 && random.below(8) == 0 && !scores[i - 1].empty() &&
          (exploited[i].empty() || exploited[i].back() < scores[i].size()))
        exploited[i].push_back(scores[i].size());
      const std::uint64_t count = random.below(20) == 0 ? random.below(1500) : random.below(3) == 0 ? 1 : 0;
      for (std::uint64_t k = 0; k < count; ++k) scores[i].push_back(random.below(9) == 0 ? NAN : random.uniform());
    }
    std::vector<Result> trials;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      Result made = trial(std::to_string(i), scores[i]);
      for (const std::size_t before : exploited[i])
        made.exploits.push_back(
            {.first_result = before, .donor = std::to_string(i - 1), .checkpoint = "/somewhere/x/y"});
      trials.push_back(std::move(made));
    }
    const ResultGrid grid("/somewhere", std::move(trials), maximize("score"));
    const Source source{.results = grid,
                        .place = [](const std::filesystem::path& path) { return path.string(); },
                        .last_errors = [](const Result&) { return ""; }};
    ASSERT_EQ(document_of(source, curves), document_of(source)) << "step " << step;
  }
}

TEST(GrowingDocument, ReadsEachResultOnce) {
  CurveReader curves;
  const std::vector<bool> all{true};
  curves.read(ResultGrid("/somewhere", {trial("0", {0.1, 0.2})}, maximize("score")), {{}}, all);
  // The reader does not look again at results that it has read, so it does not see other numbers there.
  const Curves made = curves.read(ResultGrid("/somewhere", {trial("0", {5, 5, 0.3})}, maximize("score")), {{}}, all);
  EXPECT_EQ(made.trials[0].items()[1], list(0.1, 0.2, 0.3));
}

}  // namespace
}  // namespace cadre::report
