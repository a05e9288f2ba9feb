// Validation of checkpoints beside training: the metrics of validators, validators that fail, and runs that are
// interrupted meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/json.h"
#include "cadre/train_callback.h"
#include "scenario.h"
#include "support/event_file.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "training.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Status = train::ReportedCheckpointStatus;

namespace fs = std::filesystem;

// ---- Training functions and validators

CheckpointWriter writes(std::int64_t step) {
  return [step](const fs::path& directory) { write_step(directory, step); };
}

void wait_for_file(const fs::path& file) {
  for (int i = 0; i < 6000 && !fs::exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!fs::exists(file)) throw std::runtime_error(file.string() + " does not come");
}

fs::path run_directory() { return train::get_context().get_storage(); }

// Reports `steps` times, each time with a checkpoint to validate; waits for the file `wait_for`, if set, before the
// last report.
void reports_for_validation(const Config& config) {
  const auto steps = config.get<std::int64_t>("steps");
  const auto checkpoint = train::get_checkpoint();
  for (std::int64_t step = checkpoint ? read_step(*checkpoint) + 1 : 1; step <= steps; ++step) {
    if (step == steps && config.contains("wait_for"))
      wait_for_file(run_directory() / config.get<std::string>("wait_for"));
    train::report({{"step", step}, {"loss", 1.0 / static_cast<double>(step)}}, writes(step), {.validation = true});
  }
  bear_witness("trained", "yes");
}

// Returns the highest accuracy for step 2, of steps 1 to 4.
double accuracy_of(const Checkpoint& checkpoint) {
  const std::int64_t step = read_step(checkpoint);
  return step == 2 ? 0.9 : 0.1 * static_cast<double>(step);
}

Metrics measures(const Checkpoint& checkpoint, const Config& config) {
  return {{"accuracy", accuracy_of(checkpoint)}, {"loss", -1.0}, {"scale", config.get<std::int64_t>("scale", 1)}};
}

Metrics waits_for_the_end_of_training(const Checkpoint& checkpoint) {
  wait_for_file(run_directory() / "trained");
  return {{"accuracy", accuracy_of(checkpoint)}};
}

// Returns when 8 validators are running.
Metrics waits_for_others(const Checkpoint& checkpoint) {
  const auto name = [](std::int64_t step) { return "validating_" + std::to_string(step); };
  bear_witness(name(read_step(checkpoint)), "yes");
  for (std::int64_t step = 1; step <= 8; ++step) wait_for_file(run_directory() / name(step));
  return {};
}

// Misbehaves in a way that depends on the checkpoint's step.
Metrics misbehaves(const Checkpoint& checkpoint) {
  const std::int64_t step = read_step(checkpoint);
  std::printf("validating %d\n", static_cast<int>(step));
  std::fflush(stdout);
  bear_witness("tries_of_" + std::to_string(step), "one");
  switch (step) {
    case 1:
      throw std::runtime_error("out of luck");
    case 2:
      ::raise(SIGSEGV);
      break;
    case 3:
      ::_exit(3);
    case 4:
      return {{"huge", std::string(std::size_t{2} << 20, 'x')}};
    case 5:
      std::this_thread::sleep_for(std::chrono::hours(1));
      break;
    default:
      break;
  }
  return {{"accuracy", 1.0}};
}

// Fails in its first try.
Metrics succeeds_at_last(const Checkpoint& checkpoint) {
  const fs::path witness = run_directory() / ("tried_" + std::to_string(read_step(checkpoint)));
  if (!fs::exists(witness)) {
    std::ofstream(witness) << "once";
    throw std::runtime_error("not yet");
  }
  return {{"accuracy", 1.0}};
}

train::TrainerOptions options_with(const fs::path& storage, train::Validator validator, std::int64_t steps) {
  train::TrainerOptions options = options_in(storage, 2, {{"steps", steps}});
  options.validation = {.function = std::move(validator), .resources = {.cpus = 0.1}};
  return options;
}

train::Result run(train::TrainerOptions options) {
  return train::Trainer(fn<reports_for_validation>, std::move(options)).fit();
}

std::vector<std::int64_t> kept_steps(const train::Result& result) {
  std::vector<std::int64_t> steps;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    steps.push_back(one.reported_metrics.get<std::int64_t>("step"));
  return steps;
}

std::vector<Status> statuses(const train::Result& result) {
  std::vector<Status> found;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) found.push_back(one.status);
  return found;
}

// ---- The tests

TEST(Validation, ItsMetricsAreTheCheckpointsAndRankIt) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 4);
  options.validation.config = {{"scale", 3}};
  options.run_config.checkpoint_config = {.num_to_keep = 1, .checkpoint_score_attribute = maximize("accuracy")};
  const train::Result result = run(options);
  EXPECT_THAT(kept_steps(result), ElementsAre(4, 2)) << "the latest, and the best one";
  const train::ReportedCheckpoint& best = result.best_checkpoints.back();
  EXPECT_EQ(best.status, Status::validated);
  EXPECT_EQ(best.metrics, (Metrics{{"step", 2}, {"loss", -1.0}, {"accuracy", 0.9}, {"scale", 3}}));
  EXPECT_EQ(best.reported_metrics, (Metrics{{"step", 2}, {"loss", 0.5}}));
  EXPECT_EQ(best.validation_metrics, (Metrics{{"accuracy", 0.9}, {"loss", -1.0}, {"scale", 3}}));
  EXPECT_EQ(read_step(result.get_best_checkpoint(maximize("accuracy"))), 2);
  EXPECT_EQ(result.metrics.get<double>("loss"), 0.25) << "the history is what was reported";
  EXPECT_EQ(result.metrics.get<double>("validation/accuracy"), result.validation_history[3].get<double>("accuracy"));
}

TEST(Validation, WhatItFindsIsInTheRowsOfReportsAndAtTheirStepsInTensorBoard) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 4);
  options.run_config.checkpoint_config = {.num_to_keep = 1, .checkpoint_score_attribute = maximize("accuracy")};
  const train::Result result = run(options);
  std::istringstream lines(content_of(result.path / "result.json"));
  std::size_t report = 0;
  for (std::string line; std::getline(lines, line); ++report) {
    const Metrics row(base::parse_json(line, "result.json").dict());
    EXPECT_EQ(row.get<std::int64_t>("step"), report + 1);
    EXPECT_EQ(row.get<double>("loss"), result.metrics_history.at(report).get<double>("loss"));
    EXPECT_EQ(Metrics(row.at("validation").dict()), result.validation_history.at(report)) << line;
  }
  EXPECT_EQ(report, 4);
  EXPECT_THAT(content_of(result.path / "progress.csv"), HasSubstr("validation/accuracy"));
  std::map<std::int64_t, float> points;
  for (const fs::directory_entry& file : fs::directory_iterator(result.path)) {
    if (!file.path().filename().string().starts_with("events.out.tfevents.")) continue;
    for (const auto& value : test_support::event_values(content_of(file.path())))
      if (value.tag == "ray/tune/validation/accuracy") points[value.step] = value.scalar;
  }
  ASSERT_EQ(points.size(), 4);
  for (const auto& [step, accuracy] : points)
    EXPECT_FLOAT_EQ(accuracy, result.validation_history.at(static_cast<std::size_t>(step - 1)).get<float>("accuracy"));
}

// Reports in every form: without a validation, with a task, with a function, and by the defaults of the run.
void reports_in_every_form(const Config&) {
  train::report({{"step", 1}}, writes(1));
  train::report({{"step", 2}}, writes(2), {.validation = train::ValidationTask{.config = {{"scale", 7}}}});
  train::report({{"step", 3}}, writes(3), {.validate = fn<measures>, .validate_config = {{"scale", 8}}});
  train::report({{"step", 4}}, writes(4),
                {.checkpoint_upload_mode = train::CheckpointUploadMode::async, .validation = true});
}

TEST(Validation, AReportSaysWhetherAndHow) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 0);
  options.validation.config = {{"scale", 2}};
  const train::Result result = train::Trainer(fn<reports_in_every_form>, options).fit();
  EXPECT_THAT(statuses(result),
              ElementsAre(Status::committed, Status::validated, Status::validated, Status::validated));
  std::vector<std::int64_t> scales;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    scales.push_back(one.metrics.get<std::int64_t>("scale", 0));
  EXPECT_THAT(scales, ElementsAre(0, 7, 8, 2));
}

// Throws if such a report is not refused: no test sees what fails in a worker by the macros of googletest.
void must_be_refused(const train::ReportOptions& options) {
  try {
    train::report({{"step", 3}}, writes(3), options);
  } catch (const InvalidArgument&) {
    return;
  }
  throw std::runtime_error("a report was not refused");
}

// Reports one that needs more than there is beside the run's workers, and one that needs nothing.
void reports_with_resources(const Config&) {
  train::report({{"step", 1}}, writes(1), {.validation = train::ValidationTask{.resources = Resources{.cpus = 2}}});
  train::report({{"step", 2}}, writes(2), {.validate = fn<measures>, .validate_resources = Resources{.cpus = 0}});
  for (const Resources& wrong : {Resources{.cpus = -1}, Resources{.custom = {{"", 1.0}}}}) {
    must_be_refused({.validation = train::ValidationTask{.resources = wrong}});
    must_be_refused({.validate = fn<measures>, .validate_resources = wrong});
  }
  must_be_refused({.validation = true, .validate_resources = Resources()});
}

TEST(Validation, AReportSaysItsResources) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 0);
  const train::Result result = train::Trainer(fn<reports_with_resources>, options).fit();
  EXPECT_THAT(statuses(result), ElementsAre(Status::validated, Status::validated));
}

Metrics tells_its_cpus(const Checkpoint&) { return {{"cpus", train::get_context().get_resources().cpus}}; }

void reports_with_other_cpus(const Config&) {
  train::report({{"step", 1}}, writes(1), {.validation = true});
  train::report({{"step", 2}}, writes(2), {.validation = train::ValidationTask{.resources = Resources{.cpus = 0.5}}});
}

TEST(Validation, AValidatorIsToldTheResourcesThatItsReportHasSaid) {
  const TemporaryDirectory storage;
  const train::TrainerOptions options = options_with(storage.path(), fn<tells_its_cpus>, 0);
  const train::Result result = train::Trainer(fn<reports_with_other_cpus>, options).fit();
  std::vector<double> cpus;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    cpus.push_back(one.metrics.get<double>("cpus", -1));
  EXPECT_THAT(cpus, ElementsAre(0.1, 0.5));
}

TEST(Validation, TrainingGoesOnMeanwhile) {
  const TemporaryDirectory storage;
  const train::Result result = run(options_with(storage.path(), fn<waits_for_the_end_of_training>, 4));
  EXPECT_THAT(statuses(result), AllOf(SizeIs(4), Each(Status::validated)));
}

TEST(Validation, EightGoOnAtATime) {
  const TemporaryDirectory storage;
  const train::Result result = run(options_with(storage.path(), fn<waits_for_others>, 8));
  EXPECT_THAT(statuses(result), AllOf(SizeIs(8), Each(Status::validated)));
}

TEST(Validation, WaitsForResourcesThatTheRunsWorkersHave) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<waits_for_the_end_of_training>, 3);
  options.scaling_config.resources_per_worker = Resources{.cpus = 2};
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  const train::Result result = run(options);
  const std::string console = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(statuses(result), AllOf(SizeIs(3), Each(Status::validated)));
  const std::string said = "\nThe validation of checkpoint_000000 waits for room: 4/4 CPUs, ";
  ASSERT_THAT(console, HasSubstr(said));
  EXPECT_THAT(console.substr(console.find(said) + said.size()), Not(HasSubstr("waits for room"))) << "once is enough";
}

TEST(Validation, AValidatorThatFailsIsTriedAgainAndTheTrainingNeverFailsFromIt) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<misbehaves>, 6);
  options.validation.timeout = std::chrono::seconds(3);  // applies also to validators that return at once
  const train::Result result = run(options);
  EXPECT_EQ(result.error, std::nullopt);
  ASSERT_THAT(kept_steps(result), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(statuses(result),
              ElementsAre(Status::validation_failed, Status::validation_failed, Status::validation_failed,
                          Status::validation_failed, Status::validation_timed_out, Status::validated));
  const auto error = [&](std::size_t step) { return result.best_checkpoints.at(step - 1).validation_error; };
  EXPECT_THAT(error(1), HasSubstr("out of luck"));
  EXPECT_THAT(error(2), HasSubstr("signal 11"));
  EXPECT_THAT(error(3), HasSubstr("exited with code 3"));
  EXPECT_THAT(error(4), HasSubstr("huge"));
  EXPECT_THAT(error(5), HasSubstr("more than 3 s"));
  EXPECT_THAT(error(6), IsEmpty());
  for (const char* step : {"1", "2", "3", "4", "5"})
    EXPECT_EQ(content_of(result.path / (std::string("tries_of_") + step)), "one\none\n") << "one retry";
  EXPECT_EQ(content_of(result.path / "validations/checkpoint_000000/stdout"), "validating 1\nvalidating 1\n");
  EXPECT_EQ(result.best_checkpoints.at(0).metrics, (Metrics{{"step", 1}, {"loss", 1.0}})) << "as it was reported";
}

TEST(Validation, ARetryMaySucceed) {
  const TemporaryDirectory storage;
  const train::Result result = run(options_with(storage.path(), fn<succeeds_at_last>, 2));
  EXPECT_THAT(statuses(result), ElementsAre(Status::validated, Status::validated));
  EXPECT_THAT(result.best_checkpoints.at(0).validation_error, IsEmpty());
}

// The first validator holds the only place until all steps were reported.
Metrics holds_until_trained(const Checkpoint& checkpoint) {
  bear_witness("validating", std::to_string(read_step(checkpoint)));
  wait_for_file(run_directory() / "trained");
  return {{"accuracy", accuracy_of(checkpoint)}};
}

TEST(Validation, NewestFirstLeavesOutThoseThatAreStale) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<holds_until_trained>, 5);
  options.train_loop_config.set("wait_for", "validating");
  options.validation.order = train::ValidationOrder::newest_first;
  options.validation.max_in_flight = 1;
  const train::Result result = run(options);
  EXPECT_EQ(statuses(result).back(), Status::validated);
  EXPECT_EQ(statuses(result).at(3), Status::committed) << "reported while the first one went on";
  EXPECT_THAT(content_of(result.path / "validating"), ::testing::EndsWith("5\n"));
}

void asks_what_was_validated(const Config&) {
  train::report({{"step", 1}}, writes(1), {.validation = true});
  const auto committed = train::get_all_reported_checkpoints(train::CheckpointConsistency::committed);
  const auto validated = train::get_all_reported_checkpoints();
  bear_witness("seen", train::to_string(validated.at(0).status) + " " +
                           std::to_string(validated.at(0).metrics.get<double>("accuracy")));
  if (committed.size() != 1) throw std::runtime_error("it is committed");
}

TEST(Validation, RanksMayWaitForIt) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 0);
  const train::Result result = train::Trainer(fn<asks_what_was_validated>, options).fit();
  EXPECT_THAT(content_of(result.path / "seen"), HasSubstr("validated 0.1"));
}

// Its validator waits until all steps were reported.
void reports_while_another_thread_asks(const Config&) {
  train::report({{"step", 1}}, writes(1), {.validation = true});
  auto asking = std::async(std::launch::async, [] { return train::get_all_reported_checkpoints(); });
  wait_for_file(run_directory() / "validating");
  for (std::int64_t step = 2; step <= 5; ++step) train::report({{"step", step}});
  bear_witness("trained", "yes");
  bear_witness("seen", train::to_string(asking.get().at(0).status));
}

TEST(Validation, ARankReportsWhileAnotherOfItsThreadsWaitsForOne) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<holds_until_trained>, 0);
  const train::Result result = train::Trainer(fn<reports_while_another_thread_asks>, options).fit();
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(content_of(result.path / "seen"), "validated\nvalidated\n") << "in both ranks";
}

TEST(Validation, AWaitThatCanNeverEndIsAnError) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 0);
  options.validation.resources = {.cpus = 4};
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { train::Trainer(fn<asks_what_was_validated>, options).fit(); }),
              AllOf(HasSubstr("it would wait for ever for validations"), HasSubstr("4 CPUs")));
}

// Records each refusal as a line of the witness; goes on each time as if nothing had been reported.
void asks_for_wrong_validations(const Config&) {
  const auto refused = [](auto report) {
    try {
      report();
      bear_witness("refusals", "none");
    } catch (const InvalidArgument& error) {
      bear_witness("refusals", error.what());
    }
  };
  const auto refused_options = [&](train::ReportOptions options) {
    refused([&] { train::report({{"step", 0}}, writes(0), options); });
  };
  refused([] { train::report({{"step", 0}}, train::ReportOptions{.validation = true}); });
  refused_options({.validation = true});
  refused_options({.validate = train::Validator("nobody")});
  refused_options({.validate_config = {{"scale", 1}}});
  refused_options({.validation = true, .validate = fn<measures>});
  refused_options({.validate = fn<measures>, .validate_config = {{"images", std::string(std::size_t{2} << 20, 'x')}}});
  train::report({{"step", 1}}, writes(1));
}

TEST(Validation, WhatCannotBeIsRefusedAtTheCall) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<asks_for_wrong_validations>, options_in(storage.path(), 1)).fit();
  EXPECT_THAT(steps_of(result), ElementsAre(1));
  const std::string refusals = content_of(result.path / "refusals");
  EXPECT_THAT(refusals, AllOf(HasSubstr("a validation and no checkpoint"), HasSubstr("has no function for it"),
                              HasSubstr("\"nobody\""), HasSubstr("name the validator"),
                              HasSubstr("leave one of them out"), HasSubstr("put() it into the object store")));
  EXPECT_THAT(refusals, Not(HasSubstr("none\n")));
}

TEST(Validation, OptionsThatCannotBeAreRefusedBeforeAnythingRuns) {
  const TemporaryDirectory storage;
  const auto message = [&](auto change) {
    train::TrainerOptions options = options_with(storage.path(), fn<measures>, 1);
    change(options.validation);
    return message_of<InvalidArgument>([&] { run(options); });
  };
  EXPECT_THAT(message([](auto& validation) { validation.function = train::Validator("nobody"); }),
              HasSubstr("no function \"nobody\""));
  EXPECT_THAT(message([](auto& validation) { validation.timeout = train::Seconds(0); }),
              HasSubstr("validation timeout"));
  EXPECT_THAT(message([](auto& validation) { validation.max_in_flight = 0; }), HasSubstr("max_in_flight"));
  EXPECT_THAT(message([](auto& validation) { validation.max_retries = -2; }), HasSubstr("max_retries"));
  EXPECT_THAT(message([](auto& validation) { validation.resources.cpus = -1; }), HasSubstr("validation resources"));
  EXPECT_THAT(message([](auto& validation) { validation.resources.cpus = 5; }),
              HasSubstr("a validation needs more than there is: 5 cpus (there are 4)"));
  EXPECT_THAT(message([](auto& validation) { validation.workers.bundles = {{.cpus = 4}}; }),
              HasSubstr("a validation needs more than there is: 4.1 cpus"));
  EXPECT_THAT(message([](auto& validation) {
                validation.workers = {.bundles = {{}, {}}, .strategy = PlacementStrategy::strict_spread};
              }),
              HasSubstr("strict_spread needs 2 machines"));
  EXPECT_THAT(message([](auto& validation) { validation.resources.accelerator_type = "A100"; }),
              HasSubstr("accelerator type A100"));
  EXPECT_THAT(message([](auto& validation) { validation.config = {{"x", std::string(std::size_t{2} << 20, 'x')}}; }),
              HasSubstr("validation config"));
  EXPECT_FALSE(fs::exists(storage / "run"));
}

// ---- Validators with workers of their own

Value measures_in_a_group(const Config& config) {
  train::barrier();
  const auto right = config.get<std::int64_t>("step") * (rank() + 1);
  if (config.get<bool>("has_placeholder")) {
    const fs::path placeholder = train::get_context().get_storage().build_checkpoint_path_from_name("placeholder");
    train::report({{"right", right}}, Checkpoint::from_directory(placeholder),
                  {.checkpoint_upload_mode = train::CheckpointUploadMode::no_upload});
  } else {
    train::report({{"right", right}});
  }
  return train::get_context().get_world_size();
}

// Trains a group under the name that users would choose, from the start in each try.
Metrics validates_in_a_group(const Checkpoint& checkpoint, const Config& config) {
  const std::int64_t step = read_step(checkpoint);
  const std::string name = train::get_context().get_experiment_name() + "_validation_epoch_" + std::to_string(step);
  const train::Result result =
      train::Trainer(
          fn<measures_in_a_group>,
          {.train_loop_config = {{"step", step}, {"has_placeholder", config.get<bool>("placeholder", false)}},
           .scaling_config = {.num_workers = 2, .resources_per_worker = Resources{.cpus = 0.5}},
           .run_config = {.name = name, .verbose = 0}})
          .fit();
  const fs::path witness = run_directory() / ("tried_" + std::to_string(step));
  if (!fs::exists(witness)) {
    std::ofstream(witness) << "once";
    throw std::runtime_error("not yet");
  }
  return {{"right", result.metrics.get<std::int64_t>("right")}, {"workers", result.return_value}};
}

class GroupOfValidator : public ::testing::TestWithParam<bool> {};

TEST_P(GroupOfValidator, HasResourcesAndADirectoryOfItsOwn) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<validates_in_a_group>, 3);
  options.validation.config = {{"placeholder", GetParam()}};
  options.validation.workers = {.bundles = {{.cpus = 0.5}, {.cpus = 0.5}}};
  const train::Result result = run(options);
  ASSERT_THAT(statuses(result), ElementsAre(Status::validated, Status::validated, Status::validated))
      << result.best_checkpoints.at(0).validation_error;
  EXPECT_EQ(result.best_checkpoints.at(2).metrics.get<std::int64_t>("right"), 3);
  EXPECT_EQ(result.best_checkpoints.at(2).metrics.get<std::int64_t>("workers"), 2);
  EXPECT_TRUE(fs::exists(result.path / "validations/checkpoint_000000/run_validation_epoch_1/experiment.db"));
}

INSTANTIATE_TEST_SUITE_P(Validation, GroupOfValidator, ::testing::Bool(), [](const auto& one) {
  return one.param ? "ThatReportsAPlaceholder" : "ThatReportsMetricsOnly";
});

// Fails in a way that neither a second try nor another checkpoint could change.
Metrics says_that_it_begins_a_group(const Checkpoint& checkpoint, const Config& config) {
  bear_witness("begun", std::to_string(read_step(checkpoint)));
  return validates_in_a_group(checkpoint, config);
}

TEST(Validation, AGroupWithoutResourcesForItIsToldOnceAndNoOtherIsBegun) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<says_that_it_begins_a_group>, 3);
  options.validation.max_in_flight = 1;
  options.validation.max_retries = 5;
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  const train::Result result = run(options);
  const std::string console = ::testing::internal::GetCapturedStdout();
  ASSERT_THAT(statuses(result),
              ElementsAre(Status::validation_failed, Status::validation_failed, Status::validation_failed));
  for (const auto& checkpoint : result.best_checkpoints)
    EXPECT_THAT(checkpoint.validation_error, HasSubstr("ValidationConfig::workers"));
  EXPECT_EQ(content_of(result.path / "begun"), "1\n") << "one try of one validation";
  EXPECT_THAT(console,
              HasSubstr("No validation by says_that_it_begins_a_group can succeed, so none is begun any more: "));
  EXPECT_THAT(console, HasSubstr("\nNone of its 3 validations has succeeded. The last one has failed with: "));
}

// ---- Runs whose validations have all failed

Metrics is_never_lucky(const Checkpoint&) { throw std::runtime_error("out of luck"); }

void fails_when_validated(const Config& config) {
  reports_for_validation(config);
  train::get_all_reported_checkpoints();
  throw std::runtime_error("enough");
}

TEST(Validation, ARunThatFailsSaysThatNoneHasSucceeded) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<is_never_lucky>, 2);
  EXPECT_THAT(
      message_of<train::TrainingFailed>([&] { train::Trainer(fn<fails_when_validated>, options).fit(); }),
      AllOf(HasSubstr("enough"), HasSubstr("\nNone of its 2 validations has succeeded. The last one has failed with: "),
            HasSubstr("out of luck")));
}

TEST(Validation, ARunInWhichOneHasSucceededSaysNothingOfTheOthers) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_with(storage.path(), fn<misbehaves>, 6);
  options.validation.timeout = std::chrono::seconds(3);
  options.validation.max_retries = 0;
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  run(options);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), Not(HasSubstr("has succeeded")));
}

// ---- Interruptions

// Signals the first controller from a validator; the validators of the second controller return.
Metrics kills_its_first_controller(const Checkpoint& checkpoint, const Config& config) {
  const std::int64_t step = read_step(checkpoint);
  bear_witness("validated", std::to_string(step));
  if (step == 2 && !fs::exists(run_directory() / "killed")) {
    std::ofstream(run_directory() / "killed") << "yes";
    ::kill(static_cast<pid_t>(config.get<std::int64_t>("controller")), config.get<std::int64_t>("signal"));
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  return {{"accuracy", accuracy_of(checkpoint)}};
}

const bool is_ended = register_scenario("a validator ends its controller", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  try {
    if (train::Trainer::can_restore(storage / "run")) {
      train::Trainer::restore(storage / "run").fit();
    } else {
      train::TrainerOptions options = options_with(storage, fn<kills_its_first_controller>, 4);
      options.validation.config = {{"controller", std::int64_t{::getpid()}},
                                   {"signal", std::int64_t{std::atoi(std::getenv("CADRE_TEST_SIGNAL"))}}};
      if (std::getenv("CADRE_TEST_AFTER_TRAINING") != nullptr)
        options.scaling_config.resources_per_worker = Resources{.cpus = 2};
      run(options);
    }
  } catch (const Interrupted&) {
    return 7;
  }
  return 0;
});

class InterruptedValidation : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(InterruptedValidation, IsResumedAndEachIsFinishedOnce) {
  const auto [signal, after_training] = GetParam();
  const TemporaryDirectory storage;
  std::vector<std::string> environment{"CADRE_TEST_STORAGE=" + storage.path().string(),
                                       "CADRE_TEST_SIGNAL=" + std::to_string(signal)};
  if (after_training) environment.push_back("CADRE_TEST_AFTER_TRAINING=1");
  ScenarioProcess first("a validator ends its controller", {}, environment);
  EXPECT_EQ(first.wait(), signal == SIGKILL ? -SIGKILL : 7);
  const train::Result between = train::Result::from_directory(storage / "run");
  EXPECT_THAT(statuses(between), ::testing::Contains(Status::pending_validation));
  ScenarioProcess second("a validator ends its controller", {}, environment);
  EXPECT_EQ(second.wait(), 0);
  const train::Result result = train::Result::from_directory(storage / "run");
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(statuses(result),
              ElementsAre(Status::validated, Status::validated, Status::validated, Status::validated));
  std::set<std::string> logged;
  std::istringstream log(content_of(result.path / "validations.json"));
  for (std::string line; std::getline(log, line);) {
    const Config entry(base::parse_json(line, "validations.json").dict());
    EXPECT_EQ(entry.get<std::string>("status"), "validated");
    EXPECT_TRUE(logged.insert(entry.get<std::string>("checkpoint")).second) << "twice";
  }
  EXPECT_EQ(logged.size(), 4u);
  std::istringstream rows(content_of(result.path / "result.json"));
  for (std::string row; std::getline(rows, row);) EXPECT_THAT(row, HasSubstr("\"validation\": {")) << "of each";
  if (after_training) {
    EXPECT_EQ(content_of(result.path / "trained"), "yes\nyes\n") << "nobody trains again";
  }
  const std::string picture = train::timeline_svg(storage / "run");
  for (const char* label : {"attempt 1", "checkpoint_000000", "checkpoint_000003"})
    EXPECT_THAT(picture, HasSubstr(label));
  ScenarioProcess third("a validator ends its controller", {}, environment);
  EXPECT_EQ(third.wait(), 0) << "there is nothing left to do";
}

INSTANTIATE_TEST_SUITE_P(Validation, InterruptedValidation,
                         ::testing::Combine(::testing::Values(SIGKILL, SIGINT), ::testing::Bool()));

// ---- Callbacks

class Listens final : public train::Callback {
 public:
  explicit Listens(std::vector<std::string>& heard) : heard_(heard) {}
  void after_validation(const train::RunContext&, const train::ReportedCheckpoint& checkpoint) override {
    heard_.push_back(checkpoint.checkpoint.path().filename().string() + " " + train::to_string(checkpoint.status));
  }

 private:
  std::vector<std::string>& heard_;
};

TEST(Validation, CallbacksHearOfIt) {
  const TemporaryDirectory storage;
  std::vector<std::string> heard;
  train::TrainerOptions options = options_with(storage.path(), fn<measures>, 2);
  options.run_config.callbacks = {std::make_shared<Listens>(heard)};
  run(options);
  EXPECT_THAT(heard, ::testing::UnorderedElementsAre("checkpoint_000000 validated", "checkpoint_000001 validated"));
}

}  // namespace
}  // namespace cadre::system_tests
