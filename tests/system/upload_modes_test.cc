// Uploads of checkpoints of training runs: modes, users' own uploads, failures, and the files that are left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cadre/train.h"
#include "scenario.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "train/session.h"
#include "training.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using train::CheckpointUploadMode;

namespace fs = std::filesystem;

fs::path run_directory() { return train::get_context().get_storage(); }

fs::path filled(const fs::path& directory, std::int64_t step) {
  fs::create_directories(directory);
  write_step(directory, step);
  return directory;
}

// Returns a directory on another file system, which cannot be moved into the run's.
fs::path other_file_system() {
  static const std::string name = "/dev/shm/cadre_upload_modes_" + std::to_string(::getpid());
  return name;
}

std::vector<std::string> names_of_checkpoints(const train::Result& result) {
  std::vector<std::string> names;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    EXPECT_EQ(read_step(one.checkpoint), one.metrics.get<std::int64_t>("step")) << one.checkpoint.path();
    names.push_back(one.checkpoint.path().lexically_relative(result.path));
  }
  return names;
}

// Returns the directories in the run's directory that are not expected there.
std::vector<std::string> garbage_in(const train::Result& result, const std::vector<std::string>& known = {}) {
  std::vector<std::string> expected = names_of_checkpoints(result);
  expected.insert(expected.end(), known.begin(), known.end());
  std::vector<std::string> garbage;
  for (const auto& entry : fs::directory_iterator(result.path)) {
    const std::string name = entry.path().filename();
    const bool is_known = std::ranges::find(expected, name) != expected.end();
    if (entry.is_directory() && !is_known && !name.starts_with("rank_")) garbage.push_back(name);
  }
  return garbage;
}

// ---- Training functions

Checkpoint move_into_run(const Checkpoint& checkpoint, const std::string& name) {
  checkpoint.to_directory(run_directory() / name);
  return Checkpoint::from_directory(run_directory() / name);
}

void reports_in_every_mode(const Config& config) {
  const fs::path shm = config.get<std::string>("shm");
  const auto write = [](std::int64_t step) { return [=](const fs::path& directory) { write_step(directory, step); }; };
  const auto metrics = [](std::int64_t step) { return Metrics{{"step", step}}; };
  using Mode = CheckpointUploadMode;
  train::report(metrics(1), write(1), {.checkpoint_upload_mode = Mode::async});
  const fs::path moved = filled(run_directory().parent_path() / "moved", 2);
  train::report(metrics(2), Checkpoint::from_directory(moved), {.checkpoint_upload_mode = Mode::async});
  const fs::path copied = filled(shm / "copied", 3);
  train::report(metrics(3), Checkpoint::from_directory(copied), {.checkpoint_upload_mode = Mode::async});
  const fs::path kept = filled(shm / "kept", 4);
  train::report(metrics(4), Checkpoint::from_directory(kept),
                {.checkpoint_upload_mode = Mode::async, .delete_local_checkpoint_after_upload = false});
  train::report(metrics(5), write(5),
                {.checkpoint_upload_mode = Mode::async, .checkpoint_upload_function = move_into_run});
  train::report(metrics(6), write(6), {.checkpoint_dir_name = "sixth"});
  if (read_step(*train::get_checkpoint()) != 6) throw std::runtime_error("sync has returned too early");
  train::report(metrics(7), write(7), {.checkpoint_dir_name = "seventh", .checkpoint_upload_function = move_into_run});
  train::report(metrics(8), Checkpoint::from_directory(filled(run_directory() / "eighth", 8)),
                {.checkpoint_upload_mode = Mode::no_upload});
  const fs::path gone = filled(shm / "gone", 9);
  train::report(metrics(9), Checkpoint::from_directory(gone), {.delete_local_checkpoint_after_upload = true});
  for (const fs::path& source : {moved, copied, gone}) {
    if (fs::exists(source) && source != copied) throw std::runtime_error(source.string() + " is still there");
  }
  if (!fs::exists(kept)) throw std::runtime_error("what was to stay is gone");
  train::report(metrics(10), write(10), {.checkpoint_upload_mode = Mode::async});
}

// Rank 1 reports no checkpoint; all ranks get the same checkpoint at any time, whatever uploads are in flight.
void sees_the_same_in_all_ranks(const Config&) {
  for (std::int64_t step = 1; step <= 40; ++step) {
    const Metrics metrics{{"step", step}};
    const auto write = [&](const fs::path& directory) { write_step(directory, step); };
    if (rank() == 0) {
      train::report(metrics, write,
                    {.checkpoint_upload_mode = CheckpointUploadMode::async,
                     .checkpoint_upload_function = step % 3 == 0 ? move_into_run : train::CheckpointUploadFunction()});
    } else {
      train::report(metrics);
    }
    const auto checkpoint = train::get_checkpoint();
    const Value seen = checkpoint ? Value(checkpoint->path().string()) : Value();
    if (train::broadcast_from_rank_zero(seen) != seen) throw std::runtime_error("ranks see different checkpoints");
    train::barrier();
  }
}

void makes_one_directory_together(const Config&) {
  const auto upload = [](const Checkpoint& checkpoint, const std::string& name) {
    fs::create_directories(run_directory() / name);
    fs::copy(checkpoint.path() / "part", run_directory() / name / ("of_" + std::to_string(rank())));
    if (rank() == 0) write_step(run_directory() / name, 1);
    return Checkpoint::from_directory(run_directory() / name);
  };
  for (const auto mode : {CheckpointUploadMode::sync, CheckpointUploadMode::async}) {
    train::report({{"step", 1}}, [](const fs::path& directory) { std::ofstream(directory / "part") << rank(); },
                  {.checkpoint_upload_mode = mode, .checkpoint_upload_function = upload});
  }
}

// Records each refusal as a line of the witness; goes on each time as if nothing had been reported.
void is_refused(const Config&) {
  const auto refused = [](const Checkpoint& checkpoint, train::ReportOptions options) {
    try {
      train::report({{"step", 0}}, checkpoint, options);
      bear_witness("refused", "nothing");
    } catch (const Error& error) {
      bear_witness("refused", error.what());
    }
  };
  using Mode = CheckpointUploadMode;
  const auto from = [](const fs::path& path) { return Checkpoint::from_directory(path); };
  const fs::path good = filled(run_directory().parent_path() / "good", 1);
  const fs::path inside = filled(run_directory() / "inside", 1);
  refused(from(good), {.checkpoint_upload_mode = Mode::no_upload});
  refused(from(run_directory() / "missing"), {.checkpoint_upload_mode = Mode::no_upload});
  refused(from(run_directory()), {.checkpoint_upload_mode = Mode::no_upload});
  refused(from(run_directory() / "rank_0"), {.checkpoint_upload_mode = Mode::no_upload});
  refused(from(inside), {.checkpoint_upload_mode = Mode::no_upload, .checkpoint_upload_function = move_into_run});
  refused(from(good), {.checkpoint_dir_name = "a/b"});
  refused(from(good), {.checkpoint_dir_name = "a b"});
  refused(from(good), {.checkpoint_dir_name = "checkpoint_000007"});
  refused(from(good), {.checkpoint_dir_name = "inside"});
  refused(from(inside), {.checkpoint_upload_mode = Mode::no_upload, .checkpoint_dir_name = "outside"});
  refused(from(inside), {.delete_local_checkpoint_after_upload = true});
  refused(from(run_directory().parent_path()), {.checkpoint_upload_mode = Mode::async});
  refused(from(good),
          {.checkpoint_upload_function = [](const Checkpoint& checkpoint, const std::string&) { return checkpoint; }});
  fs::create_symlink("/", filled(good.parent_path() / "linked", 1) / "link");
  refused(from(good.parent_path() / "linked"), {.checkpoint_upload_mode = Mode::async});
  train::report({{"step", 1}}, from(good));
}

void uploads_what_fails(const Config& config) {
  const fs::path tries = run_directory() / "tries";
  const auto upload = [=](const Checkpoint& checkpoint, const std::string& name) {
    bear_witness("tries", "once");
    const auto so_far = static_cast<std::int64_t>(fs::file_size(tries) / 5);
    if (so_far > config.get<std::int64_t>("failures")) return move_into_run(checkpoint, name);
    fs::create_directories(run_directory() / name);
    if (config.get<bool>("io")) throw StorageError("the storage is away");
    throw std::runtime_error("the uploader is wrong");
  };
  train::report({{"step", 1}}, [](const fs::path& directory) { write_step(directory, 1); },
                {.checkpoint_upload_mode = CheckpointUploadMode::async, .checkpoint_upload_function = upload});
}

void names_different_directories(const Config&) {
  const fs::path mine = filled(run_directory() / ("of_rank_" + std::to_string(rank())), 1);
  train::report({{"step", 1}}, Checkpoint::from_directory(mine),
                {.checkpoint_upload_mode = CheckpointUploadMode::no_upload});
}

void names_its_checkpoints(const Config&) {
  using Mode = CheckpointUploadMode;
  const auto write = [](std::int64_t step) { return [=](const fs::path& directory) { write_step(directory, step); }; };
  train::report({{"step", 1}}, write(1), {.checkpoint_dir_name = "checkpoint_best"});
  train::report({{"step", 2}}, write(2),
                {.checkpoint_dir_name = "checkpoint_loss=0.5", .checkpoint_upload_function = move_into_run});
  const fs::path mine = train::get_context().get_storage().build_checkpoint_path_from_name("checkpoint_mine");
  train::report({{"step", 3}}, Checkpoint::from_directory(filled(mine, 3)),
                {.checkpoint_upload_mode = Mode::no_upload, .checkpoint_dir_name = "checkpoint_mine"});
  train::report({{"step", 4}}, write(4));
}

// Rank 0 uploads its files into the directory "best", which rank 1 creates.
void uploads_and_does_not(const Config& config) {
  const fs::path made = run_directory() / "best";
  const bool is_made_before = config.get<bool>("before");
  if (rank() == 1 && is_made_before) filled(made, 1);
  train::barrier();
  if (rank() == 0) {
    train::report({{"step", 1}}, [](const fs::path& directory) { write_step(directory, 1); },
                  {.checkpoint_dir_name = "best"});
  } else {
    if (!is_made_before) filled(made, 1);
    train::report({{"step", 1}}, Checkpoint::from_directory(made),
                  {.checkpoint_upload_mode = CheckpointUploadMode::no_upload});
  }
}

void leaves_its_checkpoints_in_place(const Config&) {
  for (std::int64_t step = 1; step <= 3; ++step)
    train::report({{"step", step}},
                  Checkpoint::from_directory(filled(run_directory() / "mine" / std::to_string(step), step)),
                  {.checkpoint_upload_mode = CheckpointUploadMode::no_upload});
  train::report({{"step", 3}}, Checkpoint::from_directory(run_directory() / "mine/3"),
                {.checkpoint_upload_mode = CheckpointUploadMode::no_upload});
}

// ---- Modes

class SharedMemory {
 public:
  SharedMemory() { fs::create_directories(other_file_system()); }
  ~SharedMemory() { fs::remove_all(other_file_system()); }
};

TEST(UploadModes, AllOfThemCommitInTheOrderOfTheReportsAndLeaveNothingBehind) {
  const SharedMemory shm;
  const TemporaryDirectory storage;
  const train::Result result =
      train::Trainer(fn<reports_in_every_mode>, options_in(storage.path(), 1, {{"shm", other_file_system().string()}}))
          .fit();
  EXPECT_THAT(names_of_checkpoints(result), ElementsAre("checkpoint_000000", "checkpoint_000001", "checkpoint_000002",
                                                        "checkpoint_000003", "checkpoint_000005_1", "sixth", "seventh",
                                                        "eighth", "checkpoint_000008", "checkpoint_000009"));
  EXPECT_THAT(garbage_in(result), ElementsAre());
  EXPECT_FALSE(fs::exists(other_file_system() / "copied")) << "it was copied, and was to go";
  EXPECT_TRUE(fs::exists(other_file_system() / "kept/step"));
}

TEST(UploadModes, AllRanksSeeTheSameCheckpointBehindTheSameReport) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<sees_the_same_in_all_ranks>, options_in(storage.path(), 3)).fit();
  EXPECT_EQ(names_of_checkpoints(result).size(), 40u);
  EXPECT_EQ(read_step(*result.checkpoint), 40);
}

TEST(UploadModes, RanksThatUploadThemselvesMakeOneDirectory) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<makes_one_directory_together>, options_in(storage.path(), 2)).fit();
  EXPECT_THAT(names_of_checkpoints(result), ElementsAre("checkpoint_000001_1", "checkpoint_000002_1"));
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    for (const char* of : {"0", "1"}) EXPECT_EQ(content_of(one.checkpoint.path() / (std::string("of_") + of)), of);
  }
}

TEST(UploadModes, WhatLiesInTheRunIsKeptAndDeletedLikeAnyOther) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 1);
  options.run_config.checkpoint_config.num_to_keep = 1;
  EXPECT_THAT(
      message_of<train::TrainingFailed>([&] { train::Trainer(fn<leaves_its_checkpoints_in_place>, options).fit(); }),
      HasSubstr("mine/3 is one already"));
  const train::Result result = train::Result::from_directory(storage / "run");
  EXPECT_THAT(names_of_checkpoints(result), ElementsAre("mine/3"));
  EXPECT_FALSE(fs::exists(storage / "run/mine/1"));
}

TEST(UploadModes, WhatCannotBeIsRefusedAtTheCallAndNothingIsLost) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<is_refused>, options_in(storage.path(), 1)).fit();
  std::istringstream refused(content_of(storage / "run/refused"));
  for (const char* part : {"does not lie in the run's directory", "is no directory", "belongs to the run itself",
                           "belongs to the run itself", "leave one of them out", "contains a '/'", "letters, digits",
                           "Cadre gives such names itself: checkpoint_ and a number", "exists already",
                           "keeps its name", "which lies in the run's directory", "which holds the run's directory",
                           "does not lie in the run's directory", "neither a file"}) {
    std::string line;
    std::getline(refused, line);
    EXPECT_THAT(line, HasSubstr(part));
  }
  EXPECT_EQ(result.metrics_history.size(), 1u);
  EXPECT_THAT(garbage_in(result, {"inside"}), ElementsAre());
}

TEST(UploadModes, RanksThatNameDifferentDirectoriesAreTold) {
  const TemporaryDirectory storage;
  EXPECT_THAT(message_of<train::TrainingFailed>(
                  [&] { train::Trainer(fn<names_different_directories>, options_in(storage.path(), 2)).fit(); }),
              AllOf(HasSubstr("of_rank_0"), HasSubstr("of_rank_1"), HasSubstr("must name one directory")));
}

TEST(UploadModes, ModesThatDoNotGoTogetherAreOneErrorWhoeverComesFirst) {
  for (const bool before : {true, false}) {
    const TemporaryDirectory storage;
    const train::TrainerOptions options = options_in(storage.path(), 2, {{"before", before}});
    EXPECT_THAT(message_of<train::TrainingFailed>([&] { train::Trainer(fn<uploads_and_does_not>, options).fit(); }),
                HasSubstr("the checkpoint of rank 0 is to be uploaded, and that of rank 1 lies where it is to be"));
  }
}

TEST(UploadModes, NamesMayBeginLikeCadresOwn) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<names_its_checkpoints>, options_in(storage.path(), 1)).fit();
  EXPECT_EQ(result.checkpoint->path().filename(), "checkpoint_000003");
  EXPECT_THAT(garbage_in(result, {"checkpoint_best", "checkpoint_loss=0.5", "checkpoint_mine", "checkpoint_000003"}),
              ElementsAre());
  for (const char* name : {"checkpoint_best", "checkpoint_loss=0.5", "checkpoint_mine"})
    EXPECT_TRUE(fs::exists(result.path / name / ".metadata.json")) << name;
}

// Rank 1 asks alone, while rank 0 still uploads; rank 0 asks with a timeout of 0, then without a timeout.
Value asks_what_there_is(const Config&) {
  const auto upload = [](const Checkpoint& checkpoint, const std::string& name) {
    while (!fs::exists(run_directory() / "asked")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return move_into_run(checkpoint, name);
  };
  const auto write = [](std::int64_t step) { return [=](const fs::path& directory) { write_step(directory, step); }; };
  const auto ask = [](std::optional<train::Seconds> timeout) {
    List steps;
    for (const train::ReportedCheckpoint& reported :
         train::get_all_reported_checkpoints(train::CheckpointConsistency::committed, timeout)) {
      if (read_step(reported.checkpoint) != reported.metrics.get<std::int64_t>("step"))
        throw std::runtime_error("another checkpoint's metrics");
      steps.push_back(reported.metrics.at("step"));
    }
    return Value(steps);
  };
  if (rank() == 1) {
    train::report({{"step", 1}});
    train::report({{"step", 2}});
    const Value all = ask({});
    if (all != list(1, 2)) throw std::runtime_error("rank 1 was not told of all");
    return all;
  }
  train::report({{"step", 1}}, write(1));
  train::report({{"step", 2}}, write(2),
                {.checkpoint_upload_mode = CheckpointUploadMode::async, .checkpoint_upload_function = upload});
  const Value at_once = ask(train::Seconds(0));
  bear_witness("asked", "once");
  return list(at_once, ask({}));
}

TEST(UploadModes, AnyRankMayAskWhatIsCommitted) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<asks_what_there_is>, options_in(storage.path(), 2)).fit();
  EXPECT_EQ(result.return_value, list(list(1), list(1, 2)));
}

// ---- Failures

train::Result run_failing(const fs::path& storage, std::int64_t failures, bool io, std::int64_t max_failures) {
  train::TrainerOptions options = options_in(storage, 1, {{"failures", failures}, {"io", io}});
  options.run_config.failure_config.max_failures = max_failures;
  return train::Trainer(fn<uploads_what_fails>, options).fit();
}

TEST(UploadModes, AnUploadWhoseStorageIsAwayIsTriedAgainWithinTheAttempt) {
  const TemporaryDirectory storage;
  const train::Result result = run_failing(storage.path(), 1, true, 0);
  EXPECT_EQ(result.attempts, 1);
  EXPECT_THAT(names_of_checkpoints(result), ElementsAre("checkpoint_000001_1"));
}

TEST(UploadModes, AnUploadThatFailsForGoodFailsTheGroupAndNamesTheCheckpoint) {
  const TemporaryDirectory storage;
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { run_failing(storage.path(), 1, false, 0); }),
              AllOf(HasSubstr("checkpoint_000001_1"), HasSubstr("report 1"), HasSubstr("the uploader is wrong")));
  EXPECT_THAT(garbage_in(train::Result::from_directory(storage / "run")), ElementsAre());
  const train::Result again = train::Trainer::restore(storage / "run").fit();
  EXPECT_THAT(names_of_checkpoints(again), ElementsAre("checkpoint_000001_2"));
  EXPECT_THAT(garbage_in(again), ElementsAre());
}

// ---- A full disk

// Uses up the names that the disk has for files, and removes these files once this rank has said that it waits, or
// after a minute.
class FilledDisk {
 public:
  explicit FilledDisk(std::size_t waits_before) : frees_([this, waits_before] { free_after(waits_before + 1); }) {}
  ~FilledDisk() { frees_.join(); }

  // Returns how often this rank has waited.
  static std::size_t waits() {
    const std::string said = content_of(run_directory() / "rank_0/stderr");
    std::size_t count = 0;
    for (std::size_t at = 0; (at = said.find("the disk is full, and this worker waits", at)) != said.npos; ++at)
      ++count;
    return count;
  }

 private:
  void free_after(std::size_t waits_then) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (waits() < waits_then && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fs::remove_all(directory_);
  }
  static fs::path fill() {
    const fs::path directory = run_directory().parent_path() / "fillers";
    fs::create_directory(directory);
    for (int i = 0; std::ofstream(directory / std::to_string(i)); ++i) {
    }
    return directory;
  }

  const fs::path directory_ = fill();
  std::thread frees_;
};

// Reports directories of its own in each mode, while the disk is full when the kept state is written into them.
void reports_on_a_full_disk(const Config&) {
  using Mode = CheckpointUploadMode;
  std::optional<FilledDisk> disk;
  std::int64_t step = 0;
  train::Session::current()->kept_states().keep("step", [&] {
    disk.emplace(FilledDisk::waits());
    return Value(step);
  });
  const auto report = [&](const fs::path& directory, const train::ReportOptions& options) {
    ++step;
    train::report({{"step", step}}, Checkpoint::from_directory(filled(directory, step)), options);
    disk.reset();
    if (FilledDisk::waits() != static_cast<std::size_t>(step)) throw std::runtime_error("it has not waited");
  };
  report(run_directory() / "in_place", {.checkpoint_upload_mode = Mode::no_upload});
  report(run_directory().parent_path() / "uploaded", {.checkpoint_upload_function = move_into_run});
  report(run_directory().parent_path() / "borrowed",
         {.checkpoint_upload_mode = Mode::async, .delete_local_checkpoint_after_upload = false});
}

const bool reports_there = register_scenario("a rank reports on a full disk", [] {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<reports_on_a_full_disk>, options_in(storage.path(), 1)).fit();
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    say(to_json(train::KeptStates::read(one.checkpoint.path(), "step").value_or(Value())));
  return 0;
});

TEST(UploadModes, AFullDiskIsWaitedForWhenAStateIsKeptInAUsersDirectory) {
  ScenarioProcess process("a rank reports on a full disk", {own_small_disk});
  const std::string line = process.line();
  if (line.starts_with("cannot: ")) GTEST_SKIP() << line;
  EXPECT_EQ(line, "1");
  EXPECT_EQ(process.line(), "2");
  EXPECT_EQ(process.line(), "3");
  EXPECT_EQ(process.wait(), 0);
}

// ---- The controller's end

// Reports from another file system and kills the controller once, at once after a report: the next controller finishes
// the copies.
void kills_its_controller(const Config& config) {
  const fs::path shm = config.get<std::string>("shm");
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) step = read_step(*checkpoint);
  bear_witness("began_at", std::to_string(step));
  const bool first = !fs::exists(run_directory() / "killed");
  while (step < 4) {
    ++step;
    const fs::path source = filled(shm / std::to_string(step), step);
    std::ofstream(source / "large") << std::string(16 << 20, 'x');
    train::report({{"step", step}}, Checkpoint::from_directory(source),
                  {.checkpoint_upload_mode = CheckpointUploadMode::async,
                   .delete_local_checkpoint_after_upload = config.get<bool>("remove"),
                   .checkpoint_dir_name = "step_" + std::to_string(step)});
    if (step == 2 && first) {
      bear_witness("killed", "once");
      const auto controller = static_cast<pid_t>(config.get<std::int64_t>("controller"));
      ::kill(controller, SIGSTOP);  // so that it cannot notice that its source is removed
      if (config.get<bool>("lose")) fs::remove_all(source);
      ::kill(controller, SIGKILL);
    }
  }
}

const bool is_killed = register_scenario("a rank kills its controller", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  const std::string shm = std::getenv("CADRE_TEST_SHM");
  if (train::Trainer::can_restore(storage / "run")) {
    train::Trainer::restore(storage / "run").fit();
    return 0;
  }
  train::Trainer(fn<kills_its_controller>, options_in(storage, 1,
                                                      {{"shm", shm},
                                                       {"remove", std::getenv("CADRE_TEST_REMOVE") != nullptr},
                                                       {"lose", std::getenv("CADRE_TEST_LOSE") != nullptr},
                                                       {"controller", std::int64_t{::getpid()}}}))
      .fit();
  return 0;
});

// Interrupts the controller while the upload is still running.
void is_interrupted_during_an_upload(const Config& config) {
  const auto upload = [](const Checkpoint& checkpoint, const std::string& name) {
    while (!fs::exists(run_directory() / "interrupted")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return move_into_run(checkpoint, name);
  };
  train::report({{"step", 1}}, [](const fs::path& directory) { write_step(directory, 1); },
                {.checkpoint_upload_mode = CheckpointUploadMode::async, .checkpoint_upload_function = upload});
  ::kill(static_cast<pid_t>(config.get<std::int64_t>("controller")), SIGINT);
  bear_witness("interrupted", "once");
  for (std::int64_t step = 2; step <= 1'000'000; ++step) train::report({{"step", step}});
}

const bool is_interrupted = register_scenario("an upload is interrupted", [] {
  try {
    train::Trainer(fn<is_interrupted_during_an_upload>,
                   options_in(std::getenv("CADRE_TEST_STORAGE"), 1, {{"controller", std::int64_t{::getpid()}}}))
        .fit();
  } catch (const Interrupted&) {
    return 0;
  }
  return 1;
});

TEST(UploadModes, CtrlCWaitsForWhatIsOnItsWay) {
  const TemporaryDirectory storage;
  ScenarioProcess process("an upload is interrupted", {}, {"CADRE_TEST_STORAGE=" + storage.path().string()});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_THAT(names_of_checkpoints(train::Result::from_directory(storage / "run")), ElementsAre("checkpoint_000001_1"));
}

// Reports directories that are to be deleted, and interrupts the controller meanwhile.
void is_told_to_stop_in_a_report(const Config& config) {
  train::ReportOptions options{.delete_local_checkpoint_after_upload = true};
  if (config.get<bool>("by_function")) options.checkpoint_upload_function = move_into_run;
  for (std::int64_t step = 1; step <= 1'000'000; ++step) {
    const fs::path source = filled(fs::path(config.get<std::string>("shm")) / std::to_string(step), step);
    if (step == 2) ::kill(static_cast<pid_t>(config.get<std::int64_t>("controller")), SIGINT);
    train::report({{"step", step}}, Checkpoint::from_directory(source), options);
  }
}

const bool is_told_to_stop = register_scenario("a report is told to stop", [] {
  try {
    train::Trainer(fn<is_told_to_stop_in_a_report>,
                   options_in(std::getenv("CADRE_TEST_STORAGE"), 1,
                              {{"shm", std::string(std::getenv("CADRE_TEST_SHM"))},
                               {"by_function", std::getenv("CADRE_TEST_FUNCTION") != nullptr},
                               {"controller", std::int64_t{::getpid()}}}))
        .fit();
  } catch (const Interrupted&) {
    return 0;
  }
  return 1;
});

class ToldToStop : public ::testing::TestWithParam<const char*> {};

// The last one stayed.
TEST_P(ToldToStop, DeletesItsDirectoryAfterTheUpload) {
  const SharedMemory shm;
  const TemporaryDirectory storage;
  ScenarioProcess process(
      "a report is told to stop", {},
      {"CADRE_TEST_STORAGE=" + storage.path().string(), "CADRE_TEST_SHM=" + other_file_system().string(), GetParam()});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_FALSE(train::Result::from_directory(storage / "run").best_checkpoints.empty());
  EXPECT_TRUE(fs::is_empty(other_file_system()));
}

INSTANTIATE_TEST_SUITE_P(UploadModes, ToldToStop, ::testing::Values("CADRE_TEST_COPY=1", "CADRE_TEST_FUNCTION=1"),
                         [](const auto& name) { return std::string(name.param).substr(11, 4); });

class KilledDuringUpload : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledDuringUpload, FinishesWhatItsSourceIsThereFor) {
  const SharedMemory shm;
  const TemporaryDirectory storage;
  const std::vector<std::string> environment{"CADRE_TEST_STORAGE=" + storage.path().string(),
                                             "CADRE_TEST_SHM=" + other_file_system().string(), GetParam()};
  ScenarioProcess first("a rank kills its controller", {}, environment);
  EXPECT_EQ(first.wait(), -SIGKILL);
  ScenarioProcess second("a rank kills its controller", {}, environment);
  EXPECT_EQ(second.wait(), 0);
  const train::Result result = train::Result::from_directory(storage / "run");
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4));
  if (std::string(GetParam()).starts_with("CADRE_TEST_LOSE")) {
    EXPECT_THAT(content_of(storage / "run/began_at"), StartsWith("0\n"));
  } else {
    EXPECT_EQ(content_of(storage / "run/began_at"), "0\n2\n") << "it waits for what was on its way";
    EXPECT_THAT(names_of_checkpoints(result), ElementsAre("step_1", "step_2", "step_3", "step_4"));
  }
  for (const train::ReportedCheckpoint& one : result.best_checkpoints)
    EXPECT_EQ(fs::file_size(one.checkpoint.path() / "large"), std::uintmax_t{16} << 20) << one.checkpoint.path();
  EXPECT_THAT(garbage_in(result), ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(UploadModes, KilledDuringUpload,
                         ::testing::Values("CADRE_TEST_KEEP=1", "CADRE_TEST_REMOVE=1", "CADRE_TEST_LOSE=1"),
                         [](const auto& name) { return std::string(name.param).substr(11, 4); });

}  // namespace
}  // namespace cadre::system_tests
