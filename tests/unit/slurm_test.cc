#include "engine/cluster/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::engine::cluster::slurm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const AgentStart kStart{
    .command = {"/opt/my program", "it's", "$HOME"}, .variables = {{"TOKEN", "secret"}}, .directory = "/work dir"};

TEST(Slurm, AnArrayHasAJobForEachNode) {
  const NodeRequest request{
      .id = 7, .nodes = 3, .cpus = 3.5, .gpus = 2, .options = {{"partition", "a100"}, {"contiguous", ""}}};
  EXPECT_THAT(submit_command(request, kStart, "run"),
              ElementsAre("sbatch", "--parsable", "--no-requeue", "--export=ALL", "--job-name=cadre-run.7",
                          "--chdir=/work dir", "--array=0-2", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=4",
                          "--gres=gpu:2", "--output=/dev/null", "--contiguous", "--partition=a100"));
}

TEST(Slurm, NodesThatAreOfUseOnlyTogetherAreOneJob) {
  const NodeRequest request{.id = 7, .nodes = 3, .all_or_none = true};
  EXPECT_THAT(submit_command(request, kStart, "run"), Contains("--nodes=3"));
  EXPECT_THAT(submit_command(request, kStart, "run"), Not(Contains(HasSubstr("--array"))));
  EXPECT_THAT(submit_script(request, kStart), HasSubstr("'srun' '--nodes=3' '--ntasks=3'"));
  EXPECT_THAT(submit_script(request, kStart), HasSubstr("SLURM_PROCID"));
}

TEST(Slurm, ANodeIsTakenWholeUnlessCpusAreGiven) {
  EXPECT_THAT(submit_command({.id = 1}, kStart, "run"), Contains("--exclusive"));
  EXPECT_THAT(submit_command({.id = 1, .cpus = 1}, kStart, "run"), Not(Contains("--exclusive")));
}

TEST(Slurm, TheScriptQuotesTheCommandAndHasNoSecrets) {
  const std::string script = submit_script({.id = 1}, kStart);
  EXPECT_EQ(script,
            "#!/bin/sh\nCADRE_AGENT_ORDINAL=\"$SLURM_ARRAY_TASK_ID\" exec '/opt/my program' 'it'\\''s' '$HOME'\n");
}

TEST(Slurm, TheScriptKeepsWhatTheAgentPrintsWhereTheNodeCanWriteIt) {
  AgentStart start = kStart;
  start.log = "/runs/it's one/.agents/7";
  const std::string redirection = "if (set -C; : >\"$log\") 2>/dev/null; then exec 2>>\"$log\"; fi\n";
  EXPECT_THAT(submit_script({.id = 7}, start),
              StartsWith("#!/bin/sh\nlog='/runs/it'\\''s one/.agents/7'_\"$SLURM_ARRAY_TASK_ID\"\n" + redirection));
  EXPECT_THAT(submit_script({.id = 7, .nodes = 2, .all_or_none = true}, start),
              StartsWith("#!/bin/sh\nlog='/runs/it'\\''s one/.agents/7'\n" + redirection + "exec 'srun'"));
}

TEST(Slurm, NoCommandLineHasSecrets) {
  for (const Words& command : {submit_command({.id = 1}, kStart, "run"), step_command({.id = 1}, kStart, 1, false)})
    EXPECT_THAT(command, Not(Contains(HasSubstr("secret"))));
}

TEST(Slurm, AStepHasAllOfItsNode) {
  const NodeRequest request{.id = 7, .nodes = 1, .options = {{"exclusive", ""}, {"het-group", "1"}}};
  EXPECT_THAT(step_command(request, kStart, 1, true),
              ElementsAre("srun", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--cpu-bind=none", "--no-kill",
                          "--kill-on-bad-exit=0", "--export=ALL", "--input=none", "--overlap", "--chdir=/work dir",
                          "--het-group=1", "--", "/opt/my program", "it's", "$HOME"));
}

TEST(Slurm, AStepThatCarriesASessionPassesEveryByteOn) {
  AgentStart start = kStart;
  start.over_stdio = true;
  const Words command = step_command({.id = 7}, start, 1, false);
  EXPECT_THAT(command, Contains("--unbuffered"));
  EXPECT_THAT(command, Contains("--input=all"));
  EXPECT_THAT(step_environment({{"SLURM_LABELIO", "1"}, {"SLURM_JOB_ID", "2"}}, {}, true),
              ElementsAre("SLURM_JOB_ID=2"));
  EXPECT_THAT(faults_of({.options = {{"label", ""}}}, true),
              HasSubstr("\"label\" is set by Cadre where srun carries the session"));
  EXPECT_EQ(faults_of({.options = {{"label", ""}}}), "");
}

TEST(Slurm, TheEndOfATaskIsToldFromTheEndOfItsSrun) {
  EXPECT_TRUE(has_task_ended("srun: error: n1: task 0: Exited with exit code 7\n"));
  EXPECT_FALSE(has_task_ended("srun: error: Node failure on n1\n"));
  EXPECT_FALSE(has_task_ended("my program: task 0: done\n"));
}

TEST(Slurm, FaultyOptionsAreNamedAllAtOnce) {
  const std::string faults =
      faults_of({.nodes = 0, .options = {{"--partition", "a"}, {"array", "1"}, {"comment", "a\nb"}}});
  for (const char* part : {"0 nodes", "\"--partition\"", "\"array\" is set by Cadre", "\"comment\" has a line break"})
    EXPECT_THAT(faults, HasSubstr(part));
  EXPECT_EQ(faults_of({.options = {{"gpus-per-node", "a100:4"}}}), "");
}

TEST(Slurm, AnOldVersionIsRefusedWithWhatIsNeeded) {
  EXPECT_EQ(fault_of_version("slurm-wlm 22.05.8\n"), "");
  EXPECT_EQ(fault_of_version("slurm 20.11.0"), "");
  EXPECT_EQ(fault_of_version("slurm 20.02.7\n"), "this is Slurm 20.02.7; 20.11 or newer is needed");
  EXPECT_THAT(fault_of_version("command not found"), HasSubstr("\"command not found\" for its version"));
}

TEST(Slurm, TheJobsIdIsFoundAmongOtherLines) {
  EXPECT_EQ(submitted_job("12\n"), "12");
  EXPECT_EQ(submitted_job("Welcome!\n12;cluster\n"), "12");
  EXPECT_EQ(submitted_job(""), std::nullopt);
}

TEST(Slurm, JobsOfOtherExperimentsAreNotOurs) {
  EXPECT_EQ(request_of(job_name("run", 12), "run"), 12);
  EXPECT_EQ(request_of("cadre-run2.1", "run"), std::nullopt);
  EXPECT_EQ(request_of("cadre-run.1x", "run"), std::nullopt);
  EXPECT_EQ(request_of("training", "run"), std::nullopt);
}

TEST(Slurm, JobsAreReadFromSqueue) {
  const std::vector<Job> jobs = parse_jobs(
      "3|1|RUNNING|None|1795741183|1795741300|n1|cadre-x.1\n"
      "3|2|PENDING|Resources|1795749999|1795759999|(null)|cadre-x.1\n"
      "4|N/A|PREEMPTED|None|N/A|1795741190|n[1-2]|cadre-x.2\n"
      "5|N/A|RUNNING|None|N/A|NONE|n1|somebody's\n"
      "broken|line\n",
      "x");
  ASSERT_EQ(jobs.size(), 3);
  EXPECT_EQ(jobs[0].id, "3_1");
  EXPECT_EQ(jobs[0].ordinal, 1);
  EXPECT_FALSE(jobs[0].waits());
  EXPECT_TRUE(jobs[0].runs());
  EXPECT_EQ(jobs[0].end, 1795741300);
  EXPECT_TRUE(jobs[1].waits());
  EXPECT_EQ(jobs[1].reason, "Resources");
  EXPECT_EQ(jobs[1].start, 1795749999);
  EXPECT_EQ(jobs[1].end, std::nullopt);
  EXPECT_EQ(jobs[2].request, 2);
  EXPECT_EQ(jobs[2].ordinal, std::nullopt);
  EXPECT_TRUE(jobs[2].has_ended());
  EXPECT_EQ(jobs[2].description(), "job 4 on n[1-2]: PREEMPTED");
}

TEST(Slurm, AnUnreachableControllerIsNoRefusal) {
  EXPECT_TRUE(is_unreachable(
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"));
  EXPECT_FALSE(is_unreachable("sbatch: error: Batch job submission failed: Invalid partition name specified"));
}

TEST(Slurm, WhatACommandSaysHasNoPrefixes) {
  EXPECT_EQ(
      said("sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid\n"),
      "invalid partition specified: nope; Batch job submission failed: Invalid");
}

TEST(Slurm, AStepWaitsUntilItIsCreated) {
  const std::string waits = "srun: Job 4 step creation temporarily disabled, retrying (Requested nodes are busy)\n";
  EXPECT_EQ(waiting_step(waits), "Requested nodes are busy");
  EXPECT_EQ(waiting_step(waits + "srun: Step created for StepId=4.1\n"), "");
  EXPECT_EQ(waiting_step("temporarily disabled, retrying (says the agent)\n"), "");
}

TEST(Slurm, ARefusedStepIsToldFromAnAgentsEnd) {
  EXPECT_TRUE(is_step_refused("srun: error: Only allocated 2 nodes asked for 3\n"));
  EXPECT_FALSE(is_step_refused("srun: error: n1: task 0: Exited with exit code 7\n"));
}

TEST(Slurm, AnAllocationThatHasEndedIsToldFromAnAgentsEnd) {
  EXPECT_TRUE(is_allocation_over(
      "Slurm job 1 has expired\nCheck SLURM_JOB_ID environment variable. Expired or invalid job 1\n"));
  EXPECT_TRUE(
      is_allocation_over("srun: error: Unable to create step for job 1: Job/step already completing or completed\n"));
  EXPECT_FALSE(is_allocation_over("srun: error: n1: task 0: Exited with exit code 7\n"));
  EXPECT_FALSE(is_allocation_over("The license has expired\n")) << "says the agent";
}

TEST(Slurm, JobsDoNotInheritTheJobOfThisProcess) {
  const Variables own = {
      {"SLURM_JOB_ID", "1"}, {"SLURM_CONF", "/c"}, {"SBATCH_PARTITION", "p"}, {"HOME", "/h"}, {"PMI_RANK", "0"}};
  EXPECT_THAT(job_environment(own, {{"TOKEN", "x"}}),
              ElementsAre("HOME=/h", "SBATCH_PARTITION=p", "SLURM_CONF=/c", "TOKEN=x"));
  EXPECT_THAT(step_environment(own, {}), Contains("SLURM_JOB_ID=1"));
}

TEST(Slurm, ABatchScriptIsNoStep) {
  EXPECT_FALSE(is_in_step({{"SLURM_JOB_ID", "1"}}));
  EXPECT_FALSE(is_in_step({{"SLURM_STEP_ID", "4294967290"}}));  // an interactive shell
  EXPECT_TRUE(is_in_step({{"SLURM_STEP_ID", "0"}}));
}

TEST(Slurm, TheTimeLimitIsInTheEnvironmentOrAsked) {
  EXPECT_EQ(allocation_span({{"SLURM_JOB_START_TIME", "1795741000"}, {"SLURM_JOB_END_TIME", "1795741183"}}),
            (Span{.start = 1795741000, .end = 1795741183}));
  EXPECT_EQ(allocation_span({}), std::nullopt);
  EXPECT_THAT(span_command({{"SLURM_JOB_ID", "12"}}), Contains("--jobs=12"));
  EXPECT_EQ(parse_span("1795741000|1795741183\n"), (Span{.start = 1795741000, .end = 1795741183}));
  EXPECT_EQ(parse_span("1795741000|NONE\n"), (Span{.start = 1795741000})) << "an unlimited job";
  EXPECT_EQ(parse_span("1795741000|NONE\n1795741000|1795741183\n1795741000|1795749999\n")->end, 1795741183)
      << "the parts of a heterogeneous job";
  EXPECT_EQ(parse_span(""), std::nullopt);
  EXPECT_EQ(parse_span("N/A|N/A\n"), std::nullopt);
}

TEST(Slurm, TheTimeLimitOfAJobOfAnArrayIsNotThatOfTheOthers) {
  EXPECT_THAT(span_command({{"SLURM_JOB_ID", "14"}, {"SLURM_ARRAY_JOB_ID", "12"}, {"SLURM_ARRAY_TASK_ID", "3"}}),
              Contains("--jobs=12_3"));
}

TEST(Slurm, TheTimeThatIsLeftIsByTheClockThatSaysLess) {
  const Span span{.start = 1000, .end = 1600};
  EXPECT_EQ(seconds_left(span, 1100, 1000), 500);
  EXPECT_EQ(seconds_left(span, 800, 700), 500) << "this clock is behind: the job has run for 100 s at least";
  EXPECT_EQ(seconds_left(span, 1400, 1300), 200) << "this clock is ahead, or the job was seen late";
  EXPECT_EQ(seconds_left({.end = 1600}, 1100, 1000), 500);
  EXPECT_EQ(seconds_left({.start = 1000}, 1100, 1000), std::nullopt) << "no limit";
}

}  // namespace
}  // namespace cadre::engine::cluster::slurm
