#include "engine/cluster/node_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster/shell.h"

namespace cadre::engine::cluster {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const NodeCommands kRemoteShell{.submit = {"ssh", "{host}", "sh"}};
const NodeCommands kQueue{.submit = {"qsub", "-l", "ncpus={cpus}:ngpus={gpus}", "-q", "{queue}", "-N", "{name}"},
                          .cancel = {"qdel", "{id}"},
                          .list = {"qstat", "{ids}"}};
const AgentStart kStart{.command = {"/opt/my program", "it's"},
                        .variables = {{"TOKEN", "se'cret"}},
                        .directory = "/work dir",
                        .log = "/log"};

// ---- Words

TEST(NodeCommands, ValuesComeInThePlaceOfTheirNamesAndOtherBracesStay) {
  const auto values =
      values_of({.group = "train", .cpus = 3, .options = {{"hosts", "a"}, {"queue", "long"}}}, "n", "a");
  EXPECT_THAT(
      filled({"{host}:{cpus}/{gpus}", "{queue}{group}", "{\"cpu\":{cpus}}", "{}", "{", "{{name}}", "{range .x}"},
             values),
      ElementsAre("a:3/0", "longtrain", "{\"cpu\":3}", "{}", "{", "{n}", "{range .x}"));
  EXPECT_THAT(filled({"qstat", "{ids}", "-x"}, values, {"7", "8"}), ElementsAre("qstat", "7", "8", "-x"));
  EXPECT_THAT(filled({"qstat", "{ids}"}, values), ElementsAre("qstat"));
  EXPECT_THAT(filled({"{name}{unknown}"}, {{"name", "n"}}), ElementsAre("n{unknown}"));
}

TEST(NodeCommands, HostsAreDividedByCommasAndBlanks) {
  EXPECT_THAT(hosts_of({{"hosts", "a, b\n c,,d "}}), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(hosts_of({{"host", "a"}}), IsEmpty());
}

TEST(NodeCommands, ANameHasWhatKubernetesAllows) {
  EXPECT_EQ(node_name("Login_1.example-4711", 12, 3), "cadre-login-1-example-4711-12-3");
  const std::string longest = node_name(std::string(100, 'A') + "-4711", 12, 3);
  EXPECT_EQ(longest.size(), 63U);
  EXPECT_THAT(longest, EndsWith("a-4711-12-3"));
}

// ---- Faults

TEST(NodeCommands, CommandsOfEachKindHaveNoFault) {
  EXPECT_THAT(faults_of(kRemoteShell, false), IsEmpty());
  EXPECT_THAT(faults_of(kRemoteShell, true), IsEmpty());
  EXPECT_THAT(faults_of(kQueue, false), IsEmpty());
  EXPECT_THAT(faults_of(kRemoteShell, {.nodes = 2, .options = {{"hosts", "a,b"}}}), IsEmpty());
  EXPECT_THAT(faults_of(kQueue, {.nodes = 2, .cpus = 2, .options = {{"queue", "long"}}}), IsEmpty());
}

TEST(NodeCommands, EachFaultOfCommandsIsSaid) {
  const auto fault = [](NodeCommands commands, bool over_stdio = false) {
    const std::vector<std::string> faults = faults_of(commands, over_stdio);
    return faults.size() == 1 ? faults.front() : std::to_string(faults.size()) + " faults";
  };
  EXPECT_THAT(fault({}), HasSubstr("cluster.commands.submit is empty"));
  EXPECT_THAT(fault({.submit = {"qsub"}, .list = {"qstat"}}), HasSubstr("nodes could not be given back"));
  EXPECT_THAT(fault({.submit = {"ssh"}, .ended = "Done"}), HasSubstr("which need list"));
  EXPECT_THAT(fault(kQueue, true), HasSubstr("has no input and output here"));
  EXPECT_THAT(fault({.submit = {"ssh", "{id}"}}), HasSubstr("submit has {id}"));
  EXPECT_THAT(fault({.submit = {"qsub"}, .cancel = {"qdel", "{id}"}, .list = {"qstat", "{queue}"}}),
              HasSubstr("list has {queue}"));
  EXPECT_THAT(fault({.submit = {"qsub"}, .cancel = {"qdel"}, .list = {"qstat"}}), HasSubstr("cancel has no {id}"));
  EXPECT_THAT(fault({.submit = {"qsub"}, .cancel = {"qdel", "{id}"}, .list = {"qstat"}, .id = "("}),
              HasSubstr("id is no regular expression: \"(\""));
  EXPECT_THAT(fault({.submit = {"qsub"}, .cancel = {"qdel", "{id}"}, .list = {"qstat"}, .ended = "["}),
              HasSubstr("ended is no regular expression"));
}

TEST(NodeCommands, EachFaultOfAGroupIsSaidWithItsName) {
  const auto fault = [](const NodeCommands& commands, NodeRequest request) {
    request.group = "g";
    const std::vector<std::string> faults = faults_of(commands, request);
    return faults.size() == 1 ? faults.front() : std::to_string(faults.size()) + " faults";
  };
  EXPECT_EQ(fault(kQueue, {.cpus = 2}),
            "cluster.groups: \"g\" has no option \"queue\", and cluster.commands have {queue}; it has {cpus}, {gpus}, "
            "{group}, {host}, {id}, {name}");
  EXPECT_EQ(fault(kQueue, {.options = {{"queue", "long"}}}),
            "cluster.groups: \"g\" says no cpus, and cluster.commands have {cpus}");
  EXPECT_THAT(fault(kQueue, {.cpus = 2, .options = {{"queue", "long"}, {"project", "x"}}}),
              HasSubstr("has the option \"project\", and no word of cluster.commands has {project}"));
  EXPECT_THAT(fault(kQueue, {.cpus = 2, .options = {{"queue", "long"}, {"hosts", "a"}}}),
              HasSubstr("no word of cluster.commands has {host}"));
  EXPECT_THAT(fault(kRemoteShell, {}), HasSubstr("has no option \"hosts\""));
  EXPECT_THAT(fault(kRemoteShell, {.options = {{"hosts", "a,-oProxyCommand=x"}}}), HasSubstr("take for an option"));
  EXPECT_THAT(fault(kRemoteShell, {.options = {{"hosts", "a,b,a"}}}), HasSubstr("has the host a twice"));
  EXPECT_THAT(fault(kRemoteShell, {.nodes = 3, .options = {{"hosts", "a,b"}}}),
              HasSubstr("wants 3 nodes, and has 2 hosts"));
}

// ---- The script

TEST(NodeCommands, TheScriptSetsVariablesOfTheProgramButNotThoseOfItsMachineOrJob) {
  const Variables own{{"PATH", "/bin"}, {"HOME", "/home/me"},   {"SSH_AUTH_SOCK", "/s"}, {"CUDA_VISIBLE_DEVICES", "3"},
                      {"A.B", "c"},     {"SLURM_JOB_ID", "17"}, {"TOKEN", "another"}};
  const std::string script = start_script(kStart, own, 4, true);
  EXPECT_EQ(script,
            "#!/bin/sh\n"
            "export CADRE_AGENT_ORDINAL='4'\n"
            "export PATH='/bin'\n"
            "export TOKEN='se'\\''cret'\n" +
                log_lines("/log", "_4") +
                "cd '/work dir' || exit\n"
                "exec '/opt/my program' 'it'\\''s' </dev/null >/dev/null\n");
}

TEST(NodeCommands, OverStandardStreamsTheAgentHasThoseOfTheShell) {
  AgentStart start = kStart;
  start.over_stdio = true;
  EXPECT_THAT(start_script(start, {}, 0, false), EndsWith("\nexec '/opt/my program' 'it'\\''s'\n"));
}

TEST(NodeCommands, TheEndOfAnAgentIsKnownByItsOwnLine) {
  EXPECT_EQ(agent_end("cadre: the agent has ended with exit code 3\n"), "exit code 3");
  EXPECT_EQ(agent_end("motd\ncadre: the agent has ended with exit code 137\nclosed\n"), "signal 9");
  EXPECT_EQ(agent_end("Connection to n1 closed by remote host.\n"), std::nullopt);
}

// ---- What is printed

TEST(NodeCommands, AJobsIdIsTheOnlyWordOrWhatThePatternFinds) {
  EXPECT_EQ(job_id("  12.server\n", ""), "12.server");
  EXPECT_EQ(job_id("Job <12> is submitted to queue <normal>.\n", ""), std::nullopt);
  EXPECT_EQ(job_id("Job <12> is submitted to queue <normal>.\n", "<(\\d+)>"), "12");
  EXPECT_EQ(job_id("pod/cadre-7\n", "[^/\\s]+$"), "cadre-7");
  EXPECT_EQ(job_id("no\n", "\\d+"), std::nullopt);
  EXPECT_EQ(job_id("", ""), std::nullopt);
  EXPECT_EQ(job_id("-x\n", ""), std::nullopt);  // would be an option of cancel
  EXPECT_EQ(job_id(std::string(1'000'000, 'a'), "(a|b)*c"), std::nullopt);
}

TEST(NodeCommands, AJobsLineHasItsIdAsAWord) {
  const std::string printed = "  112 x r\n 12.server  me  Q \n13 y 12.serverless";
  EXPECT_EQ(line_of(printed, "12.server"), "12.server  me  Q");
  EXPECT_EQ(line_of(printed, "112"), "112 x r");
  EXPECT_EQ(line_of(printed, "13"), "13 y 12.serverless");
  EXPECT_EQ(line_of(printed, "2"), std::nullopt);
  EXPECT_TRUE(finds("Completed|Error", "cadre-7 Completed 3m"));
  EXPECT_FALSE(finds("Completed|Error", "cadre-7 Running 3m"));
  EXPECT_FALSE(finds("", "cadre-7 Completed"));
}

TEST(Shell, WhatIsPrintedBecomesOneLineWithItsEnd) {
  EXPECT_EQ(in_one_line("\n a b \r\n\n c\n"), "a b; c");
  EXPECT_EQ(in_one_line(" \n"), "");
  const std::string longest = in_one_line(std::string(2000, 'x') + "end");
  EXPECT_EQ(longest.size(), 1003U);
  EXPECT_THAT(longest, EndsWith("xend"));
}

}  // namespace
}  // namespace cadre::engine::cluster
