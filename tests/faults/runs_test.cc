// Each call of a controller that publishes, and of a training run with its validators and their datasets, fails once or
// is the last call of its process: the run goes on or can be continued, with the outcome of an undisturbed one.
// faults_test.cc says how to repeat a failure. CADRE_FAULTS_MOST=<n> has so many calls of each kind fail (default: 8).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "failure.h"
#include "survival/experiment_subject.h"
#ifdef CADRE_TRAINING_CONTROLLER
#include "survival/training_subject.h"
#endif
#include "support/temporary_directory.h"

namespace cadre::survival {
namespace {

using test_support::content_of;
using test_support::TemporaryDirectory;

constexpr auto kPatience = std::chrono::seconds(180);
constexpr int kRestores = 3;  // restores of a run whose controller has ended

enum class Kind { published, training, published_training };

struct Case {
  Kind kind;
  std::string role;
  std::string how;
  long stride;  // unless the environment sets it

  std::string name() const {
    constexpr const char* names[] = {"published", "training", "published_training"};
    return fmt::format("{}_{}_{}", names[static_cast<int>(kind)], role, how);
  }
};
void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name(); }

class EveryCallOfARun : public ::testing::TestWithParam<Case> {
 protected:
  // An undisturbed run writes the rows that all runs read.
  void SetUp() override {
    Random random(0, 0);
    const auto ended = make(0)->start(random, {}).wait(kPatience);
    ASSERT_TRUE(ended && ended->code == Ended::finished);
  }

  std::unique_ptr<Subject> make(long call);
  // Returns how many forms the runs have, in turn.
  static long forms();
  // Returns false if the run makes fewer calls.
  bool fail_one(long call);

  TemporaryDirectory folder_;
  Experiments experiments_{folder_.path(), program_beside("cadre"), folder_of_files(folder_.path())};
#ifdef CADRE_TRAINING_CONTROLLER
  Trainings trainings_{folder_.path(), program_beside("cadre_training_controller"), folder_of_files(folder_.path())};
#endif
};

// Makes a run whose setting is the same for all calls, except for the validator, which changes with each call.
std::unique_ptr<Subject> EveryCallOfARun::make(long call) {
  const std::string name = fmt::format("run_{}", call);
#ifdef CADRE_TRAINING_CONTROLLER
  const std::int64_t form = call % std::ssize(kForms);
  if (GetParam().kind == Kind::training) return trainings_.make(form, name);
  if (GetParam().kind == Kind::published_training) return trainings_.make(std::ssize(kForms) + form, name);
#endif
  return experiments_.make(2, name);
}

long EveryCallOfARun::forms() {
#ifdef CADRE_TRAINING_CONTROLLER
  if (GetParam().kind != Kind::published) return std::ssize(kForms);
#endif
  return 1;
}

bool EveryCallOfARun::fail_one(long call) {
  const Case& one = GetParam();
  const auto report = folder_ / "report";
  std::filesystem::remove(report);
  Random random(static_cast<std::uint64_t>(call), 0);
  const std::unique_ptr<Subject> subject = make(call);
  const auto run = [&](std::vector<std::string> environment) {
    ControllerProcess controller = subject->start(random, std::move(environment));
    auto how = controller.wait(kPatience);
    EXPECT_TRUE(how) << controller.what_hangs();
    return how;
  };
  auto ended = run(environment_of({one.role, one.how, call, {}, report}));
  const std::string what = content_of(report);
  const std::string context = fmt::format("CADRE_FAULTS_FIRST={}, {}, {}", call, subject->text(), what);
  EXPECT_TRUE(ended) << context << "it hangs";
  expect_no_faults(still_running(kPatience), context);
  std::vector<std::string> of_readers = subject->faults_of_readers(random);
  std::erase_if(of_readers, [](const std::string& fault) { return fault.find("nothing is published") != fault.npos; });
  expect_no_faults(of_readers, context + "readers");
  for (int restore = 0; restore < kRestores && (!ended || ended->code != Ended::finished || restore == 0); ++restore)
    ended = run({});
  EXPECT_TRUE(ended && ended->code == Ended::finished) << context << "then: " << (ended ? ended->message : "it hangs");
  std::vector<std::string> faults = subject->faults(true, one.how.starts_with("kill") && one.role == "worker" ? 1 : 0);
  // A callback that gets no memory throws, and is then disabled like any callback that throws.
  if (one.how == "ENOMEM")
    std::erase_if(faults, [](const std::string& fault) { return fault.starts_with("a callback has seen"); });
  // The store of a validator's own run that has failed is left as it was.
  std::erase_if(faults, [](const std::string& fault) {
    return fault.find("/experiment.db-") != fault.npos && fault.find("was left") != fault.npos;
  });
  expect_no_faults(faults, context);
  subject->remove();
  return !what.empty();
}

TEST_P(EveryCallOfARun, FailsAndNothingIsLost) {
  fail_calls(
      GetParam().stride, [this](long call) { return fail_one(call); }, forms(),
      number_from_environment("CADRE_FAULTS_MOST", 8));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* how : {"ENOSPC", "EIO", "EIO_READ", "EMFILE", "ENOMEM", "kill_before", "kill_half", "kill_after"}) {
    const bool allocates = std::string_view(how) == "ENOMEM";
    all.push_back({Kind::published, "controller", how, allocates ? 120'001 : 2401});
#ifdef CADRE_TRAINING_CONTROLLER
    all.push_back({Kind::training, "controller", how, allocates ? 60'001 : 1201});
    all.push_back({Kind::training, "worker", how, allocates ? 60'001 : 601});
    all.push_back({Kind::published_training, "controller", how, allocates ? 120'001 : 2401});
#endif
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, EveryCallOfARun, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace cadre::survival
