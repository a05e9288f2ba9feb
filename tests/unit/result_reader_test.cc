// Results of experiments that grow: read on, they are what they are when everything is read.
#include "tune/results/result_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "cadre/error.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"
#include "tune/description.h"

namespace cadre::tune {
namespace {

namespace fs = std::filesystem;
using store::CheckpointRow;
using store::DecisionRow;
using store::EventRow;
using store::ExperimentStore;
using store::ResultRow;
using store::TrialRow;
using test_support::TemporaryDirectory;
using Check = store::ExperimentReader::Check;

ExperimentStore create(const fs::path& directory) {
  const TunerOptions options{.param_space = {{"x", uniform(0, 1)}}, .tune_config = {.metric = minimize("loss")}};
  return ExperimentStore::create(directory, {"name", "train", base::to_json(describe(Trainable("train"), options))});
}

// Everything that readers show of an experiment, as text.
std::string text_of(const ResultGrid& grid) {
  std::string text;
  const auto add = [&](const auto&... parts) { ((text += fmt::format("{} ", parts)), ...); };
  for (const Result& trial : grid) {
    add(trial.trial_id, to_string(trial.status), to_json(trial.config.dict()), to_json(trial.drawn_config.dict()),
        to_json(trial.metrics.dict()), trial.num_results(), trial.attempts, trial.failures, trial.error.value_or("-"));
    add(trial.checkpoint ? trial.checkpoint->path().string() : "none");
    for (const auto& [checkpoint, metrics] : trial.best_checkpoints) add(checkpoint.path().string());
    for (const ExploitRecord& exploit : trial.exploits)
      add(exploit.donor, exploit.training_iteration, exploit.donor_iteration, exploit.first_result);
    for (const Metrics& metrics : trial.metrics_history()) add(to_json(metrics.dict()));
    text += '\n';
  }
  const ExperimentSummary& summary = grid.summary();
  add(to_string(summary.state), summary.started, summary.last_event, summary.running_seconds, summary.sessions,
      summary.is_paused);
  return text;
}

// A store to which a test adds what a controller might.
class GrowingStore {
 public:
  explicit GrowingStore(ExperimentStore store) : store_(std::move(store)) {
    store_.add(EventRow{.time = time_, .kind = "controller_started", .data = "{}"});
    store_.commit();
  }

  void grow(base::RandomStream& random) {
    time_ += 1;
    const std::uint64_t what = random.below(8);
    if (trials_.empty() || what == 0) {
      make_trial();
    } else if (what == 1) {
      end(random);
    } else if (what == 2) {
      exploit(random);
    } else if (what == 3 && !checkpoints_.empty()) {
      store_.remove_checkpoint(checkpoints_.front());
      checkpoints_.erase(checkpoints_.begin());
    } else {
      report(random);
    }
    store_.commit();
  }

  // Decides that the first trial is tried again.
  void try_again(const char* counts) {
    if (trials_.empty()) make_trial();
    const std::int64_t cause =
        store_.add(EventRow{.time = time_, .kind = "worker_ended", .trial = 0, .attempt = 1, .data = "{}"});
    store_.add(DecisionRow{.cause = cause, .kind = "retry", .trial = 0, .data = counts});
    store_.commit();
  }

 private:
  struct Trial {
    TrialRow row = {};
    std::int64_t step = 0;
    std::int64_t reported = 0;  // checkpoints
  };

  void make_trial() {
    const auto index = static_cast<std::int64_t>(trials_.size());
    const TrialRow row{.trial = index,
                       .trial_id = fmt::format("{:05}", index),
                       .status = "RUNNING",
                       .attempt = 1,
                       .config = R"({"x": 0.5})",
                       .directory = fmt::format("trial_{}", index)};
    const std::int64_t cause = store_.add(EventRow{.time = time_, .kind = "suggested", .data = "{}"});
    store_.put(row);
    store_.add(DecisionRow{.cause = cause, .kind = "make", .trial = index, .data = R"({"config": {"x": 0.5}})"});
    store_.add(DecisionRow{.cause = cause, .kind = "launch", .trial = index, .data = R"({"attempt": 1})"});
    trials_.push_back({row});
  }

  void report(base::RandomStream& random) {
    Trial& trial = trials_[random.below(trials_.size())];
    if (trial.row.status != "RUNNING") return;
    ++trial.step;
    const bool has_checkpoint = random.below(2) == 0;
    store_.add(
        ResultRow{.time = time_,
                  .trial = trial.row.trial,
                  .attempt = 1,
                  .step = trial.step,
                  .metrics = fmt::format(R"({{"loss": {}, "training_iteration": {}}})", random.uniform(), trial.step),
                  .checkpoint = has_checkpoint ? "checkpoint" : ""});
    if (!has_checkpoint) return;
    store_.add(CheckpointRow{.id = next_checkpoint_,
                             .trial = trial.row.trial,
                             .step = trial.step,
                             .directory = fmt::format("{}/checkpoint_{:06}", trial.row.directory, trial.reported++)});
    checkpoints_.push_back(next_checkpoint_++);
  }

  void exploit(base::RandomStream& random) {
    const Trial& trial = trials_[random.below(trials_.size())];
    const Trial& donor = trials_[random.below(trials_.size())];
    if (donor.reported == 0 || trial.row.status != "RUNNING") return;
    const std::int64_t cause = store_.add(EventRow{.time = time_, .kind = "checkpoints_synced", .data = "{}"});
    const std::string checkpoint = fmt::format("{}/checkpoint_{:06}", donor.row.directory, donor.reported - 1);
    store_.add(DecisionRow{
        .cause = cause,
        .kind = "exploit",
        .trial = trial.row.trial,
        .data = fmt::format(
            R"({{"donor": {}, "checkpoint": "{}", "config": {{"x": 0.25}}, "operations": {{"x": "* 0.5"}}}})",
            donor.row.trial, checkpoint)});
  }

  void end(base::RandomStream& random) {
    Trial& trial = trials_[random.below(trials_.size())];
    if (trial.row.status != "RUNNING") return;
    const bool fails = random.below(2) == 0;
    const std::int64_t cause = store_.add(EventRow{.time = time_,
                                                   .kind = fails ? "function_threw" : "function_returned",
                                                   .trial = trial.row.trial,
                                                   .attempt = 1,
                                                   .data = "{}"});
    trial.row.status = fails ? "ERROR" : "TERMINATED";
    trial.row.error = fails ? "it broke" : "";
    store_.put(trial.row);
    store_.add(DecisionRow{.cause = cause, .kind = fails ? "fail" : "end", .trial = trial.row.trial, .data = "{}"});
  }

  ExperimentStore store_;
  double time_ = 1000;
  std::vector<Trial> trials_ = {};
  std::vector<std::int64_t> checkpoints_ = {};
  std::int64_t next_checkpoint_ = 1;
};

TEST(ResultReader, ReadOnHasWhatEverythingReadAtOnceHas) {
  const TemporaryDirectory directory;
  GrowingStore store(create(directory.path()));
  ResultReader reader(directory.path());
  base::RandomStream random(11, 0, base::Purpose::own);
  for (int step = 0; step < 150; ++step) {
    for (std::uint64_t i = random.below(4); i > 0; --i) store.grow(random);
    reader.read(Check::rows);
    ASSERT_EQ(text_of(reader.results()), text_of(read_results(directory.path(), Check::rows))) << "step " << step;
  }
  EXPECT_EQ(reader.generation(), 1);
  EXPECT_GT(reader.results().size(), 5U);
}

TEST(ResultReader, BeginsAnewWhereAnotherControllerHasWritten) {
  const TemporaryDirectory directory;
  base::RandomStream random(1, 0, base::Purpose::own);
  ResultReader reader(directory.path());
  {
    GrowingStore store(create(directory.path()));
    for (int i = 0; i < 20; ++i) store.grow(random);
    reader.read(Check::rows);
  }
  reader.read(Check::rows);
  EXPECT_EQ(reader.generation(), 1);
  // The next controller decides otherwise what the one before it had decided last.
  ExperimentStore store = ExperimentStore::open(directory.path());
  store.remove_decisions_from(3);
  store.add(EventRow{.time = 2000, .kind = "controller_started", .data = "{}"});
  store.commit();
  reader.read(Check::rows);
  EXPECT_EQ(reader.generation(), 2);
  EXPECT_EQ(text_of(reader.results()), text_of(read_results(directory.path(), Check::rows)));
}

TEST(ResultReader, ATrialHasNotFailedWhoseNodeWasLost) {
  const TemporaryDirectory directory;
  GrowingStore store(create(directory.path()));
  store.try_again(R"({"failures": 0, "restore_failures": 0, "preemption_failures": 1})");
  EXPECT_EQ(read_results(directory.path(), Check::rows)[0].failures, 0);
  store.try_again(R"({"failures": 1, "restore_failures": 0})");
  EXPECT_EQ(read_results(directory.path(), Check::rows)[0].failures, 1);
}

TEST(ResultReader, BeginsAnewWhereItsRowsAreGone) {
  const TemporaryDirectory directory;
  const fs::path inner = directory / "inner";
  base::RandomStream random(2, 0, base::Purpose::own);
  ResultReader reader(inner);
  fs::create_directory(inner);
  {
    GrowingStore store(create(inner));
    for (int i = 0; i < 10; ++i) store.grow(random);
  }
  // An earlier state of the same store, of the same controller, which has gone on from there.
  fs::copy(inner, directory / "earlier");
  fs::path kept = directory / "earlier";
  reader.read(Check::rows);
  const auto add = [](const fs::path& where, const char* loss) {
    ExperimentStore store = ExperimentStore::open(where);
    store.add(EventRow{.time = 3000, .kind = "checkpoints_synced", .data = loss});
    store.commit();
  };
  add(inner, "1");
  reader.read(Check::rows);
  EXPECT_EQ(reader.generation(), 2);
  fs::remove_all(inner);
  fs::rename(kept, inner);
  reader.read(Check::rows);
  EXPECT_EQ(reader.generation(), 3);
  EXPECT_EQ(text_of(reader.results()), text_of(read_results(inner, Check::rows)));
  fs::remove_all(inner);
  EXPECT_ANY_THROW(reader.read(Check::rows));
  fs::create_directory(inner);
  {
    GrowingStore store(create(inner));
  }
  reader.read(Check::rows);
  EXPECT_EQ(reader.results().size(), 0U);
}

}  // namespace
}  // namespace cadre::tune
