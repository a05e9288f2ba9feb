// Parts of a trial's program: placeholders, lines of reports, metrics in output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "base/directory.h"
#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"
#include "tune/program/child.h"
#include "tune/program/found_metrics.h"
#include "tune/program/metric_watch.h"
#include "tune/program/placeholders.h"
#include "tune/program/report_line.h"
#include "tune/results/result_rows.h"

namespace cadre::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string filled(std::string_view text) {
  return fill_placeholders(text, [](const std::string& name) { return "<" + name + ">"; });
}

TEST(Placeholders, AreNamesInBraces) {
  EXPECT_THAT(placeholders_in("--lr={lr} {model/width}{a.b-c:d_1}"), ElementsAre("lr", "model/width", "a.b-c:d_1"));
  EXPECT_EQ(filled("--lr={lr}{lr}!"), "--lr=<lr><lr>!");
}

TEST(Placeholders, OtherBracesStay) {
  for (const char* text : {"", "{", "}", "{}", "{ lr }", R"({"a": {"b": 1}})", "{a b}", "{{", "{{}}", "{{a b}}"}) {
    EXPECT_THAT(placeholders_in(text), IsEmpty()) << text;
    EXPECT_EQ(filled(text), text);
  }
}

TEST(Placeholders, AreEscapedByASecondPairOfBraces) {
  EXPECT_EQ(filled("{{lr}}"), "{lr}");
  EXPECT_EQ(filled("{{{lr}}}"), "{{lr}}");
  EXPECT_EQ(filled("{{lr}"), "{<lr>");
}

TEST(Placeholders, ValuesAreTextOrJson) {
  EXPECT_EQ(argument_text("a b"), "a b");
  EXPECT_EQ(argument_text(0.1), "0.1");
  EXPECT_EQ(argument_text(true), "true");
  EXPECT_EQ(argument_text(list(1, "x")), R"([1, "x"])");
  EXPECT_THROW(argument_text(Value()), InvalidArgument);
  EXPECT_THROW(argument_text(std::string("a\0b", 3)), InvalidArgument);
}

TEST(ReportLine, HasAWordOrNone) {
  using Kind = ReportLine::Kind;
  EXPECT_EQ(parse_report_line(R"({"loss": 1})").kind, Kind::tell);
  EXPECT_EQ(parse_report_line("ask {\"loss\": 1}\r").kind, Kind::ask);
  EXPECT_EQ(parse_report_line(R"(offer  {"loss": 1})").metrics.at("loss"), Value(1));
  EXPECT_EQ(parse_report_line("saved").directory, "");
  EXPECT_EQ(parse_report_line("saved /tmp/a b").directory, "/tmp/a b");
}

TEST(ReportLine, IsShownWhereItIsNone) {
  for (const char* line : {"", "loss=1", "ask", "offer [1]", "asks {}", "{\"loss\": }", "savedx", "3"}) {
    try {
      parse_report_line(line);
      ADD_FAILURE() << line;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("CADRE_REPORT_FD: ") + line));
    }
  }
}

TEST(FoundMetrics, MakeAReportWithTheExperimentsMetric) {
  FoundMetrics found("loss");
  found.find("acc", 1);
  EXPECT_FALSE(found.end_step());
  found.find("loss", 2);
  EXPECT_EQ(found.end_step(), (Metrics{{"acc", 1}, {"loss", 2}}));
  EXPECT_FALSE(found.end_step());
  EXPECT_FALSE(found.rest());
  found.find("acc", 3);
  EXPECT_EQ(found.rest(), (Metrics{{"acc", 3}, {"loss", 2}}));
}

TEST(FoundMetrics, MakeAReportPerStepWithoutAMetric) {
  FoundMetrics found("");
  found.find("a", 1);
  EXPECT_TRUE(found.end_step());
  EXPECT_FALSE(found.end_step());
}

TEST(MetricPatterns, TakeTheFirstGroupOfTheLastMatch) {
  FoundMetrics found("");
  const MetricPatterns patterns({{"group", R"(x=(\S+))"}, {"whole", "[0-9]+"}, {"absent", "y"}});
  patterns.search("x=1 x=2.5e3 x=", found);
  EXPECT_EQ(found.end_step(), (Metrics{{"group", 2500.0}, {"whole", 3}}));
}

TEST(MetricPatterns, NumbersAreWhole) {
  EXPECT_EQ(number_or_text("12"), Value(12));
  EXPECT_EQ(number_or_text("-1e-3"), Value(-0.001));
  EXPECT_EQ(number_or_text("+.5"), Value(0.5));
  EXPECT_TRUE(std::isnan(number_or_text("nan").get<double>()));
  for (const char* text : {"", "1a", "0x1", "1,5", "-"}) EXPECT_EQ(number_or_text(text), Value(text));
}

TEST(Signals, AreFoundByTheirNames) {
  EXPECT_EQ(signal_of("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(signal_of("TERM"), SIGTERM);
  EXPECT_EQ(signal_of("SIGNOTHING"), std::nullopt);
}

// ---- A metric that never comes

Result trial_in(const std::filesystem::path& directory, std::vector<Metrics> results) {
  Result trial;
  trial.trial_id = directory.filename();
  trial.path = directory;
  if (!results.empty()) trial.metrics = results.back();
  trial.rows = std::make_shared<const detail::ResultRows>(detail::ResultRows{.results = std::move(results)});
  return trial;
}

TEST(MissingMetric, IsNamedWithTheLastLinesOfATrialThatPrintedSome) {
  const test_support::TemporaryDirectory folder;
  const Result quiet = trial_in(folder.path() / "00000", {});
  const Result loud = trial_in(folder.path() / "00001", {Metrics{{"acc", 1}}});
  base::make_directory(loud.path);
  base::write_file(loud.path / "stdout", "epoch 1\nacc: 1\n");
  base::write_file(loud.path / "stderr", "loss is NaN, left out\n");
  EXPECT_EQ(missing_metric(ResultGrid("x", {quiet, loud}, minimize("loss"))),
            "no trial has reported \"loss\", the experiment's metric\n"
            "the end of stderr of trial 00001:\n  loss is NaN, left out\n"
            "the end of stdout of trial 00001:\n  epoch 1\n  acc: 1");
  EXPECT_THAT(missing_metric(ResultGrid("x", {quiet}, minimize("loss"))), HasSubstr("no trial has printed anything"));
}

TEST(MissingMetric, IsNoneIfAnyResultHasIt) {
  const Result before = trial_in("00000", {Metrics{{"eval", {{"loss", 1}}}}, Metrics{{"acc", 1}}});
  EXPECT_EQ(missing_metric(ResultGrid("x", {trial_in("00001", {}), before}, minimize("eval/loss"))), "");
  EXPECT_EQ(missing_metric(ResultGrid("x", {before}, maximize("acc"))), "");
  EXPECT_EQ(missing_metric(ResultGrid("x", {trial_in("00001", {})}, Objective{})), "");
}

}  // namespace
}  // namespace cadre::tune
