#include "loggers/mlflow_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::loggers {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;
using testing::HasSubstr;

class MlflowRunTest : public testing::Test {
 protected:
  MlflowPlace place() const {
    return {.store = directory_ / "mlruns", .experiment = "mine", .location = "/x/mine", .run = "00003"};
  }
  std::filesystem::path folder() const { return directory_ / "mlruns" / place().experiment_id() / place().run_id(); }
  std::string metric(const std::string& name) const { return content_of(folder() / "metrics" / name); }
  static Dict row(std::int64_t step, double loss) { return {{"loss", loss}, {"training_iteration", step}}; }

  TemporaryDirectory directory_;
};

TEST_F(MlflowRunTest, NamesThatMlflowAcceptsStayAndOthersAreReplacedByDifferentOnes) {
  for (const char* name : {"loss", "eval/accuracy", "a.b-c_d e:f", ".a", "a..b"}) EXPECT_EQ(mlflow_name(name), name);
  for (const char* name : {"", "..", "..a", "a/../b", "/a", "a/", "a//b", "x?y",
                           "gr\xc3\xb6\xc3\x9f"
                           "e"}) {
    EXPECT_NE(mlflow_name(name), name);
    EXPECT_EQ(mlflow_name(mlflow_name(name)), mlflow_name(name)) << name;
  }
  EXPECT_NE(mlflow_name("x?y"), mlflow_name("x!y"));
  EXPECT_LE(mlflow_name(std::string(1000, 'n')).size(), 250u);
}

TEST_F(MlflowRunTest, NamesMayHaveLineBreaksAndControlCharactersOfUnicode) {
  MlflowPlace named = place();
  named.experiment = "a\"\\\n\xc2\x85\xe2\x80\xa8\xc2\x9f\xef\xbb\xbf\xc3\xbc\xf0\x9f\x99\x82";
  make_mlflow_experiment(named);
  EXPECT_THAT(content_of(named.store / named.experiment_id() / "meta.yaml"),
              HasSubstr("\nname: \"a\\\"\\\\\\u000a\\u0085\\u2028\\u009f\\ufeff\xc3\xbc\xf0\x9f\x99\x82\"\n"));
}

TEST_F(MlflowRunTest, EachMetricHasAFileWithTimeValueAndStep) {
  MlflowRun run(place());
  run.set_config(Config{{"lr", 0.5}, {"model", {{"width", 8}}}, {"act", "relu"}, {"none", Value()}, {"yes", true}});
  run.add(row(1, 0.25), {}, 100.5);
  run.add({{"loss", std::nan("")}, {"ok", true}, {"text", "x"}, {"training_iteration", 2}}, {}, 101);
  EXPECT_GT(run.waiting_bytes(), 0u);
  run.flush();
  EXPECT_EQ(run.waiting_bytes(), 0u);
  EXPECT_EQ(metric("loss"), "100500 0.25 1\n101000 nan 2\n");
  EXPECT_EQ(metric("ok"), "101000 1 2\n");
  EXPECT_FALSE(std::filesystem::exists(folder() / "metrics" / "text"));
  EXPECT_EQ(content_of(folder() / "params" / "model" / "width"), "8");
  EXPECT_EQ(content_of(folder() / "params" / "none"), "None");
  EXPECT_EQ(content_of(folder() / "params" / "yes"), "True");
  EXPECT_THAT(content_of(folder() / "meta.yaml"), HasSubstr("\nstatus: 1\n"));
  run.set_status(MlflowStatus::failed, 102);
  run.flush();
  EXPECT_THAT(content_of(folder() / "meta.yaml"),
              testing::AllOf(HasSubstr("\nstatus: 4\n"), HasSubstr("end_time: 102000\n")));
}

// With a time that grows with the square of their number this would take minutes.
TEST_F(MlflowRunTest, OfManyMetricsThoseAreRenamedThatClashWithFolders) {
  MlflowRun run(place());
  Dict values{{"training_iteration", 1}};
  for (int i = 0; i < 20'000; ++i) values.emplace_back("class/" + std::to_string(i), i);
  run.add(values, {}, 1);
  run.flush();
  run.add({{"class", 1}, {"class-0", 2}, {"class/7/f1", 3}, {"class/x", 4}, {"training_iteration", 2}}, {}, 2);
  run.flush();
  EXPECT_THAT(run.renamed(), testing::SizeIs(2));
  EXPECT_EQ(metric(run.renamed().at("class")), "2000 1 2\n");
  EXPECT_EQ(metric(run.renamed().at("class/7/f1")), "2000 3 2\n");
  EXPECT_EQ(metric("class-0"), "2000 2 2\n");
  EXPECT_EQ(metric("class/x"), "2000 4 2\n");
  EXPECT_EQ(metric("class/19999"), "1000 19999 1\n");
}

TEST_F(MlflowRunTest, AStampCutsOffWhatCameLater) {
  MlflowRun run(place());
  run.set_config(Config{{"lr", 0.5}});
  run.add(row(1, 1), {}, 1);
  run.flush();
  const MlflowRun::Stamp stamp = run.stamp();
  run.add({{"loss", 2}, {"late", 7}, {"training_iteration", 2}}, {}, 2);
  run.flush();

  MlflowRun next(place());
  ASSERT_TRUE(next.resume(stamp));
  next.add(row(2, 3), {}, 3);
  next.flush();
  EXPECT_EQ(metric("loss"), "1000 1 1\n3000 3 2\n");
  EXPECT_FALSE(std::filesystem::exists(folder() / "metrics" / "late"));

  base::write_file(folder() / "metrics" / "loss", "");  // a loss of power
  EXPECT_FALSE(MlflowRun(place()).resume(stamp));
}

TEST_F(MlflowRunTest, ARunThatEndedGoesOnInItsFiles) {
  MlflowRun run(place());
  run.add({{"loss", 1}, {"a", 1}, {"a/b", 2}, {"x?y", 3}, {"training_iteration", 1}}, {}, 1);
  run.set_status(MlflowStatus::finished, 1);
  run.flush();
  EXPECT_THAT(run.renamed(), testing::SizeIs(2));

  MlflowRun next(place());
  next.resume();
  next.add({{"loss", 2}, {"a", 4}, {"a/b", 5}, {"x?y", 6}, {"training_iteration", 2}}, {}, 2);
  next.flush();
  EXPECT_EQ(metric("loss"), "1000 1 1\n2000 2 2\n");
  EXPECT_EQ(metric("a"), "1000 1 1\n2000 4 2\n");
  EXPECT_EQ(metric(run.renamed().at("a/b")), "1000 2 1\n2000 5 2\n");
  EXPECT_EQ(metric(run.renamed().at("x?y")), "1000 3 1\n2000 6 2\n");
  EXPECT_EQ(next.renamed(), run.renamed());
  EXPECT_THAT(content_of(folder() / "meta.yaml"), HasSubstr("\nstatus: 1\n"));
}

TEST_F(MlflowRunTest, TheOriginalNamesAreInAsManyTagsAsTheyNeed) {
  MlflowRun run(place());
  Dict values{{"training_iteration", 1}, {std::string(6000, '?'), 1}, {std::string(2000, '\x01'), 1}};
  for (int i = 0; i < 100; ++i) values.emplace_back(std::string(100, 'x') + "?" + std::to_string(i), i);
  run.add(values, {}, 1);
  run.flush();
  ASSERT_THAT(run.renamed(), testing::SizeIs(102));
  std::size_t found = 0;
  for (const auto& tag : std::filesystem::directory_iterator(folder() / "tags")) {
    if (!tag.path().filename().string().starts_with("cadre.renamed")) continue;
    const std::string text = content_of(tag.path());
    EXPECT_LE(text.size(), 5000u);
    const Value names = base::parse_json(text, tag.path().string());
    for (const auto& [safe, original] : names.dict()) {
      EXPECT_TRUE(std::filesystem::exists(folder() / "metrics" / safe)) << safe;
      if (original.get<std::string>().size() < 200) EXPECT_EQ(mlflow_name(original.get<std::string>()), safe);
      ++found;
    }
  }
  EXPECT_EQ(found, run.renamed().size());
  EXPECT_TRUE(std::filesystem::exists(folder() / "tags" / "cadre.renamed"));
}

TEST_F(MlflowRunTest, ParametersThatAreGoneAreRemoved) {
  MlflowRun run(place());
  run.set_config(Config{{"a", 1}, {"model", {{"b", 2}}}});
  run.add(row(1, 1), {}, 1);
  run.flush();
  run.set_config(Config{{"a", 3}});
  run.flush();
  EXPECT_EQ(content_of(folder() / "params" / "a"), "3");
  EXPECT_FALSE(std::filesystem::exists(folder() / "params" / "model" / "b"));
}

TEST_F(MlflowRunTest, AnExperimentOfTheSameNameElsewhereIsRefused) {
  base::make_directory(directory_ / "first");
  MlflowPlace first = place();
  first.location = (directory_ / "first").string();
  make_mlflow_experiment(first);
  make_mlflow_experiment(first);
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { make_mlflow_experiment(place()); }),
              HasSubstr("has another experiment mine, that of " + first.location));
  base::remove_tree(directory_ / "first");  // it was moved
  EXPECT_NO_THROW(make_mlflow_experiment(place()));
}

}  // namespace
}  // namespace cadre::loggers
