// Cuts the power again and again: only what was synced by then is sure to remain. A run can be read and continued from
// whatever is left, and a finished run has lost nothing.
//
//   CADRE_POWER_RUNS=100 cadre_faults_tests --gtest_filter='PowerFails.*'    number of runs of each kind
//   CADRE_POWER_FIRST=17 CADRE_POWER_RUNS=1 ...                              repeats one of them
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "failure.h"
#include "power_loss.h"
#include "survival/experiment_subject.h"
#ifdef CADRE_TRAINING_CONTROLLER
#include "survival/training_subject.h"
#endif
#include "support/temporary_directory.h"

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using test_support::TemporaryDirectory;

constexpr auto kPatience = std::chrono::seconds(180);
constexpr int kLosses = 4;  // maximum number of losses before a run is left alone

// Kills all processes at once; stops them first, so that none starts another one.
void cut(const ControllerProcess& controller) {
  std::vector<pid_t> family;
  for (std::size_t stopped = family.size(); (family = controller.family()).size() > stopped; stopped = family.size())
    for (const pid_t process : family) ::kill(process, SIGSTOP);
  for (const pid_t process : family) ::kill(process, SIGKILL);
}

// Returns true if the loss of power explains the fault. Trials learn differently after a checkpoint was lost; a
// training run repeats steps and then has more validations; a removed folder may be there again, until the next one is
// made.
bool follows_from_the_loss(const std::string& fault) {
  const auto has = [&](std::string_view part) { return fault.find(part) != fault.npos; };
  return has(kAfterALoss) || fault.starts_with("the temporary ") || fault.starts_with("validations.json has ") ||
         has(" validations have an end") || (fault.starts_with("validations/") && has(" was left"));
}

class PowerFails : public ::testing::Test {
 protected:
  using Make = std::function<std::unique_ptr<Subject>(std::int64_t)>;

  void run_all(std::int64_t runs, const Make& make);
  void run(std::int64_t number, const Make& make);
  // Returns how the controller ended; empty if the power failed first.
  std::optional<Ended> live(Subject& subject, std::optional<Milliseconds> until);
  void lose_power(Subject& subject, Disk::Loss loss);

  TemporaryDirectory place_;
  const fs::path folder_ = place_ / "disk";
  Random random_{0, 0};
  std::optional<Disk> disk_;
  int boot_ = 0;
};

void PowerFails::run_all(std::int64_t runs, const Make& make) {
  runs = number_from_environment("CADRE_POWER_RUNS", runs);
  const std::int64_t first = number_from_environment("CADRE_POWER_FIRST", 0);
  fs::create_directory(folder_);
  for (std::int64_t number = first; number < first + runs && !HasFailure(); ++number) run(number, make);
}

void PowerFails::run(std::int64_t number, const Make& make) {
  random_ = Random(static_cast<std::uint64_t>(number), 0);
  const std::unique_ptr<Subject> subject = make(number);
  SCOPED_TRACE(fmt::format("CADRE_POWER_FIRST={}: {}", number, subject->text()));
  disk_.emplace(folder_, place_ / "synced");
  std::optional<Ended> ended;
  for (int loss = 0; loss < kLosses && !ended && !HasFailure(); ++loss) {
    ended = live(*subject, Milliseconds(random_.log_uniform(5, 3000)));
    if (!ended) lose_power(*subject, random_.chance(0.3) ? Disk::Loss::all : Disk::Loss::any);
  }
  if (!ended && !HasFailure()) ended = live(*subject, {});
  if (HasFailure()) return;
  ASSERT_TRUE(ended && ended->code == Ended::finished) << (ended ? ended->message : "it hangs");
  lose_power(*subject, Disk::Loss::all);
  ended = live(*subject, {});
  ASSERT_TRUE(ended && ended->code == Ended::finished) << (ended ? ended->message : "it hangs");
  std::vector<std::string> faults = subject->faults(true, 0);
  std::erase_if(faults, follows_from_the_loss);
  expect_no_faults(faults, "at the end");
  subject->remove();
}

std::optional<Ended> PowerFails::live(Subject& subject, std::optional<Milliseconds> until) {
  std::vector<std::string> environment = disk_->environment();
  environment.push_back("CADRE_BOOT_ID=boot-" + std::to_string(++boot_));
  ControllerProcess controller = subject.start(random_, environment);
  auto ended = controller.wait(until ? std::chrono::duration_cast<std::chrono::nanoseconds>(*until) : kPatience);
  const bool was_cut = !ended;
  if (was_cut) {
    EXPECT_TRUE(until) << controller.what_hangs();
    cut(controller);
    ended = controller.wait(kPatience);
  } else {
    EXPECT_EQ(ended->code, Ended::finished) << ended->message;
  }
  expect_no_faults(still_running(kPatience), "after the power failed");
  return was_cut ? std::nullopt : ended;
}

// Cuts the power. Removes the witnesses, because reports acknowledged after the last sync may be lost, and the lease,
// as if it had expired.
void PowerFails::lose_power(Subject& subject, Disk::Loss loss) {
  disk_->lose_power(random_, loss);
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (name == "witness" || name == "lease.json") fs::remove(entry);
  }
  if (subject.has_begun()) expect_no_faults(subject.faults_of_readers(random_), "readers");
}

TEST_F(PowerFails, AnExperimentIsContinuedFromWhatIsLeft) {
  Experiments experiments(folder_, program_beside("cadre"));
  run_all(6, [&](std::int64_t number) { return experiments.make(number, fmt::format("run_{}", number)); });
}

TEST_F(PowerFails, APublishedExperimentIsContinuedFromWhatIsLeft) {
  Experiments experiments(folder_, program_beside("cadre"), folder_of_files(folder_));
  run_all(4, [&](std::int64_t number) { return experiments.make(number, fmt::format("run_{}", number)); });
}

#ifdef CADRE_TRAINING_CONTROLLER
TEST_F(PowerFails, ATrainingRunIsContinuedFromWhatIsLeft) {
  Trainings trainings(folder_, program_beside("cadre_training_controller"), folder_of_files(folder_));
  fs::create_directory(folder_);
  const auto first = trainings.make(0, "first");  // writes the rows that all runs read
  const auto ended = first->start(random_, {}).wait(kPatience);
  ASSERT_TRUE(ended && ended->code == Ended::finished);
  first->remove();
  run_all(5, [&](std::int64_t number) { return trainings.make(number, fmt::format("run_{}", number)); });
}
#endif

}  // namespace
}  // namespace cadre::survival
