#include "tune/console/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::tune::console {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const engine::Exit kCrash{engine::Exit::Kind::signal, 11, {}};

// The log lines for events that the test feeds to an experiment.
class LogLines : public ::testing::Test {
 protected:
  std::vector<std::string> feed(const Event& event) {
    Actions actions;
    experiment_.handle(event, actions);
    std::vector<std::string> texts;
    for (const Action& action : actions) {
      if (std::string text = log_text(action, experiment_, "/results/mine", detail_); !text.empty())
        texts.push_back(std::move(text));
    }
    return texts;
  }
  std::vector<std::string> report(TrialIndex trial, std::int64_t iteration, double score, std::string checkpoint = {}) {
    return feed(ResultReported{
        trial,
        experiment_.trials().at(trial).attempt,
        {iteration, {{"loss", 0.5}, {"training_iteration", iteration}, {"score", score}}, std::move(checkpoint)}});
  }

  const PopulationBasedTraining pbt_{.time_attr = "training_iteration",
                                     .metric = "score",
                                     .perturbation_interval = 2,
                                     .hyperparam_mutations = {{"lr", {0.5}}},
                                     .quantile_fraction = 0.5,
                                     .resample_probability = 0};
  Experiment experiment_{Trainable{"f"},
                         {.param_space = {{"lr", 0.5}},
                          .tune_config = {.metric = "score", .num_samples = 2, .scheduler = pbt_},
                          .run_config = {.failure_config = {.max_failures = 1}}}};
  LogDetail detail_{.verbose = 1, .trials = 2, .metric = "score"};
};

TEST_F(LogLines, StartsWithTheirConfiguration) {
  EXPECT_THAT(feed(ControllerStarted{{.cpus = 2}}),
              ElementsAre("Trial 00000 started with configuration {\"lr\": 0.5}",
                          "Trial 00001 started with configuration {\"lr\": 0.5}"));
}

TEST_F(LogLines, OfManyTrialsTheStartsAreForTheVerbose) {
  detail_.trials = 21;
  EXPECT_THAT(feed(ControllerStarted{{.cpus = 2}}), IsEmpty());
  detail_.verbose = 2;
  EXPECT_EQ(feed(WorkerEnded{0, 1, kCrash}).back(), "Trial 00000 started with configuration {\"lr\": 0.5}");
}

TEST_F(LogLines, AnExploitAndTheCheckpointThatItContinuesFrom) {
  feed(ControllerStarted{{.cpus = 2}});
  report(0, 2, 0.75, ".reporting_1");
  EXPECT_THAT(report(1, 2, 0.25, ".reporting_2"),
              ElementsAre("[PopulationBasedTraining] [Exploit] Cloning trial 00000 (score = 0.750000) into trial 00001 "
                          "(score = 0.250000), from checkpoint_000000 of iteration 2",
                          "[PopulationBasedTraining] [Explore] Perturbed the hyperparameter config of trial 00001:\n"
                          "  lr : 0.5 --- (shift left (noop)) --> 0.5"));
  EXPECT_THAT(feed(FunctionReturned{1, 1}),
              ElementsAre("Trial 00001 restored from 00000/checkpoint_000000 at training_iteration 2"));
}

TEST_F(LogLines, AFailureItsRetryAndTheEndOfAnother) {
  feed(ControllerStarted{{.cpus = 2}});
  report(0, 1, 0.5);
  EXPECT_THAT(
      feed(WorkerEnded{0, 1, kCrash}),
      ElementsAre("Trial 00000 errored after 1 iteration: the worker was ended by signal 11 (SIGSEGV) while its "
                  "training function ran\n  /results/mine/00000/error.txt",
                  "Trial 00000 is tried again from the beginning",
                  "Trial 00000 started with configuration {\"lr\": 0.5}"));
  report(1, 1, 0.25);
  EXPECT_THAT(feed(FunctionReturned{1, 1}),
              ElementsAre("Trial 00001 completed after 1 iteration: score=0.25, loss=0.5"));
}

TEST_F(LogLines, TheQuietHearOfFinalFailuresOnly) {
  detail_.verbose = 0;
  feed(ControllerStarted{{.cpus = 2}});
  EXPECT_THAT(report(0, 1, 0.5), IsEmpty());
  EXPECT_THAT(feed(WorkerEnded{0, 1, kCrash}), IsEmpty());  // the trial is retried
  EXPECT_THAT(feed(FunctionReturned{1, 1}), IsEmpty());
  EXPECT_THAT(feed(FunctionThrew{0, 2, "std::runtime_error: a\x1b[2J\nb"}),
              ElementsAre("Trial 00000 errored after 1 iteration: std::runtime_error: a\\x1b[2J\n  b\n"
                          "  /results/mine/00000/error.txt"));
}

TEST_F(LogLines, ACrashHasItsLastLinesAndALibtorchErrorNoStack) {
  feed(ControllerStarted{{.cpus = 2}});
  engine::Exit crash = kCrash;
  crash.output = "  last words\n  back trace after SIGSEGV:\n  #0 f()";
  EXPECT_THAT(feed(WorkerEnded{0, 1, crash}).front(),
              HasSubstr("training function ran\n  The last lines of its stderr:\n    last words\n    back trace after "
                        "SIGSEGV:\n    #0 f()\n  /results/mine/00000/error.txt"));
  EXPECT_EQ(
      experiment_.trials()[0].error,
      "the worker was ended by signal 11 (SIGSEGV) while its training function ran\nThe last lines of its stderr:\n"
      "  last words\n  back trace after SIGSEGV:\n  #0 f()");
  EXPECT_EQ(feed(FunctionThrew{1, 1,
                               "c10::Error: no file\nException raised from f at g.cc:1 (most recent call first):\n"
                               "frame #0: f + 0x1 (0x2 in c.so)\n"})
                .front(),
            "Trial 00001 errored after 0 iterations: c10::Error: no file\n  /results/mine/00001/error.txt");
}

TEST_F(LogLines, AReasonIsSaidOnceWhateverTheDirectoryAndTheAddresses) {
  std::map<std::string, std::string> said;
  detail_.said_errors = &said;
  feed(ControllerStarted{{.cpus = 2}});
  EXPECT_THAT(feed(FunctionThrew{0, 1, "cannot open 00000/data at 0x7f00"}).front(), HasSubstr("cannot open"));
  EXPECT_EQ(feed(FunctionThrew{1, 1, "cannot open 00001/data at 0x7fff"}).front(),
            "Trial 00001 errored after 0 iterations, for the same reason as trial 00000");
  EXPECT_EQ(feed(FunctionThrew{1, 2, "cannot open 00001/data at 0x1"}).front(),
            "Trial 00001 errored after 0 iterations, for the same reason as trial 00000");
  EXPECT_THAT(feed(FunctionThrew{0, 2, "another reason"}).front(), HasSubstr("another reason"));
  const std::vector<Trial>& trials = experiment_.trials();
  EXPECT_EQ(errors_text({&trials[0], &trials[1]}, "/results/mine", base::Encoding::utf8),
            "2 trials failed: another reason\n  /results/mine/00000/error.txt of trial 00000, and of others");
}

TEST_F(LogLines, AnErrorOfPythonIsSummarisedByItsExceptionAndNotByTheTitleOfItsTraceback) {
  feed(ControllerStarted{{.cpus = 2}});
  EXPECT_THAT(feed(FunctionThrew{
                  0, 1, "Traceback (most recent call last):\n  File \"a.py\", line 3, in train\nKeyError: 'lr'\n"}),
              ::testing::Contains(HasSubstr("\n  KeyError: 'lr'\n  /")));
  EXPECT_EQ(errors_text({&experiment_.trials()[0]}, "/results/mine", base::Encoding::utf8),
            "Trial 00000 errored after 0 iterations: KeyError: 'lr'\n  /results/mine/00000/error.txt");
}

TEST_F(LogLines, TheVerboseHearOfEachResultAndCheckpoint) {
  detail_.verbose = 2;
  feed(ControllerStarted{{.cpus = 2}});
  EXPECT_THAT(report(0, 1, 0.5), ElementsAre("Trial 00000 finished iteration 1: score=0.5, loss=0.5"));
  EXPECT_THAT(report(1, 1, 0.5, ".reporting_1"),
              ElementsAre("Trial 00001 finished iteration 1: score=0.5, loss=0.5\n"
                          "Trial 00001 saved a checkpoint for iteration 1 at 00001/checkpoint_000000"));
}

}  // namespace
}  // namespace cadre::tune::console
