// Searchers in a Tuner, with real trials.
#include "cadre/tune/searcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {

// Suggests something for the second trial only when the file exists.
struct WaitsForFile {
  std::string file = {};

  std::unique_ptr<tune::Searcher> make(const tune::SearcherSetting&) const;
  tune::Searcher::Traits traits() const { return {.learns = false}; }
};

namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;

class FileWaiter final : public tune::Searcher {
 public:
  explicit FileWaiter(fs::path file) : file_(std::move(file)) {}

  std::optional<Config> suggest(tune::TrialIndex trial) const override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (trial > 0 && !fs::exists(file_)) {
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("no report was answered meanwhile");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (trial == 2 && !fs::exists(file_.string() + "_too")) throw std::runtime_error("nothing to suggest");
    return Config{{"x", 0.25}};
  }
  void on_trial_add(tune::TrialIndex, const Config&) override {}
  void on_trial_end(tune::TrialIndex, tune::TrialStatus, const Metrics&) override {}

 private:
  fs::path file_;
};

// Makes the file after five reports.
void reports(const Config& config) {
  for (int i = 1; i <= 5; ++i) tune::report({{"loss", config.get<double>("x")}});
  std::ofstream(config.get<std::string>("file")) << "five reports were answered\n";
}

class SearcherInATuner : public ::testing::Test {
 protected:
  tune::Tuner tuner(std::int64_t trials) const {
    const std::string file = (directory_ / "five").string();
    return {fn<reports>,
            {.param_space = {{"x", tune::uniform(0, 1)}, {"file", file}},
             .tune_config = {.num_samples = trials, .searcher = WaitsForFile{file}},
             .run_config = {.name = "search", .storage_path = directory_.path(), .verbose = 0}}};
  }

  TemporaryDirectory directory_;
};

TEST_F(SearcherInATuner, HoldsNoReportUpWhileItComputesASuggestion) {
  const tune::ResultGrid results = tuner(2).fit();
  ASSERT_EQ(results.size(), 2U);
  for (const tune::Result& result : results) EXPECT_EQ(result.metrics.get<double>("loss"), 0.25);
}

TEST_F(SearcherInATuner, MayThrowAndARestoreAsksItAgain) {
  EXPECT_THAT(message_of<std::runtime_error>([&] { tuner(3).fit(); }), testing::HasSubstr("nothing to suggest"));
  std::ofstream(directory_ / "five_too") << "\n";
  const tune::ResultGrid results = tune::Tuner::restore(directory_ / "search").fit();
  EXPECT_EQ(results.size(), 3U);
  EXPECT_EQ(results.num_errors(), 0U);
}

}  // namespace

std::unique_ptr<tune::Searcher> WaitsForFile::make(const tune::SearcherSetting&) const {
  return std::make_unique<FileWaiter>(file);
}

}  // namespace cadre::system_tests
