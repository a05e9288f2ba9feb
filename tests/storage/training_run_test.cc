// Training runs that are published.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "cadre/train.h"
#include "object_server.h"
#include "publish/manifest.h"
#include "storage/storage.h"
#include "support/temporary_directory.h"
#include "survival/controller_process.h"
#include "training_program.h"

namespace cadre::storage_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using survival::ControllerProcess;
using test_support::content_of;
using test_support::TemporaryDirectory;

constexpr auto kPatience = 120s;

class PublishedRun : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()) == "s3") server_.emplace();
    uri_ = server_ ? server_->uri("folder/run") : "file://" + (directory_ / "folder/run").string();
  }
  std::unique_ptr<ControllerProcess> start(const fs::path& witness = {}) {
    return std::make_unique<ControllerProcess>(training_arguments(uri_, witness),
                                               std::vector<std::string>{"HOME=" + (directory_ / "home").string()},
                                               directory_ / "said");
  }
  std::int64_t published_rows() {
    const auto text = storage::open_storage(storage::parse_uri(uri_))->read(publish::kManifestFile);
    return text ? publish::parse_manifest(*text, uri_).position().sequence : 0;
  }
  std::string said() const { return content_of(directory_ / "said"); }

  std::optional<ObjectServer> server_;
  TemporaryDirectory directory_;
  std::string uri_;
};

INSTANTIATE_TEST_SUITE_P(Storages, PublishedRun, testing::Values("file", "s3"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(PublishedRun, GoesOnFromThereWhenTheLocalDiskIsLost) {
  for (std::int64_t rows = 20; rows <= 100; rows += 40) {
    auto run = start();
    for (const auto until = std::chrono::steady_clock::now() + kPatience; published_rows() < rows;) {
      ASSERT_FALSE(run->has_ended()) << said();
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::this_thread::sleep_for(5ms);
    }
    run->kill(SIGKILL);
    run.reset();
    const train::Result before = train::Result::from_directory(uri_);
    EXPECT_GE(before.metrics_history.size(), static_cast<std::size_t>(rows) / 2);
    ASSERT_TRUE(before.checkpoint);
    fs::remove_all(directory_ / "home");
  }
  const auto ended = start()->wait(kPatience);
  ASSERT_TRUE(ended);
  ASSERT_EQ(ended->code, 0) << ended->message;
  const train::Result result = train::Result::from_directory(uri_);
  EXPECT_EQ(result.metrics.get<std::int64_t>("sum"), kTrainingSteps * (kTrainingSteps + 1) / 2);
  EXPECT_EQ(result.metrics_history.size(), static_cast<std::size_t>(kTrainingSteps));
  EXPECT_EQ(result.best_checkpoints.size(), 3u);
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    const auto files = one.checkpoint.as_directory();
    for (const char* rank : {"rank_0", "rank_1"}) {
      std::int64_t step = 0;
      std::int64_t sum = 0;
      std::ifstream(files.path() / rank) >> step >> sum;
      EXPECT_EQ(sum, one.metrics.get<std::int64_t>("sum"));
    }
  }
  const auto published = storage::open_storage(storage::parse_uri(uri_));
  std::istringstream rows(published->read("result.json").value_or(""));
  std::int64_t step = 0;
  for (std::string row; std::getline(rows, row);)
    ASSERT_THAT(row, testing::HasSubstr(fmt::format("\"training_iteration\": {},", ++step)));
  EXPECT_EQ(step, kTrainingSteps);
  for (const char* name : {"params.json", "progress.csv"}) EXPECT_TRUE(published->find(name)) << name;
  EXPECT_EQ(std::ranges::count_if(
                published->list(""),
                [](const storage::StoredFile& file) { return file.name.starts_with("events.out.tfevents."); }),
            1);
  EXPECT_TRUE(train::Trainer::can_restore(uri_));
  EXPECT_TRUE(published->find("rank_1/stdout"));

  std::istringstream validations(published->read("validations.json").value_or(""));
  std::vector<std::int64_t> validated;
  for (std::string line; std::getline(validations, line);) {
    const Config row(base::parse_json(line, "validations.json").dict());
    EXPECT_EQ(row.get<std::string>("status"), "validated");
    const Config metrics(row.at("validation_metrics"));
    EXPECT_TRUE(metrics.get<bool>("is_right"));
    validated.push_back(metrics.get<std::int64_t>("validated_step"));
  }
  std::ranges::sort(validated);
  std::vector<std::int64_t> expected;
  for (step = kValidationInterval; step <= kTrainingSteps; step += kValidationInterval) expected.push_back(step);
  EXPECT_EQ(validated, expected) << "each once";
}

TEST_P(PublishedRun, AReportThatHasWaitedUntilItIsPublishedSurvivesTheLossOfTheLocalDisk) {
  const fs::path witness = directory_ / "witness";
  const auto last = [&] {
    std::int64_t step = 0;
    std::ifstream(witness) >> step;
    return step;
  };
  for (std::int64_t reports = 3; reports <= 9; reports += 3) {
    auto run = start(witness);
    for (const auto until = std::chrono::steady_clock::now() + kPatience; last() < reports;) {
      ASSERT_FALSE(run->has_ended()) << said();
      ASSERT_LT(std::chrono::steady_clock::now(), until) << said();
      std::this_thread::sleep_for(1ms);
    }
    run->kill(SIGKILL);
    run.reset();
    fs::remove_all(directory_ / "home");
    const train::Result published = train::Result::from_directory(uri_);
    EXPECT_GE(published.metrics.get<std::int64_t>("step"), last());
    std::int64_t step = 0;
    std::ifstream(published.checkpoint.value().as_directory().path() / "step") >> step;
    EXPECT_GE(step, last());
  }
}

}  // namespace
}  // namespace cadre::storage_tests
