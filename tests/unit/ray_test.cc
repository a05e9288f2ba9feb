#include "engine/cluster/ray.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cadre/error.h"
#include "engine/cluster/ray_launcher.h"

namespace cadre::engine::cluster::ray {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::chrono::steady_clock::time_point kNow{std::chrono::seconds(1000)};

Value member_of(const std::string& line, const char* name) {
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Value value = base::parse_json(line, "a line");
  const Value* const found = find_entry(value.dict(), name);
  return found == nullptr ? Value() : *found;
}

TEST(Ray, ARequestHasWhatIsAskedAndTheAgent) {
  const NodeRequest request{
      .id = 7,
      .nodes = 2,
      .cpus = 4,
      .gpus = 1,
      .options = {{"accelerator_type", "A100"}, {"memory", "16G"}, {"resources", R"({"tpu": 2})"}}};
  const AgentStart start{.command = {"/opt/my program", "it's\n"},
                         .variables = {{"TOKEN", "secret"}, {"PATH", "/agents"}},
                         .directory = "/work dir",
                         .log = "/logs/7"};
  const std::string line = request_line(request, {0, 1}, start, {{"PATH", "/own"}, {"HOME", "/me"}});
  EXPECT_EQ(member_of(line, "request").get<int>(), 7);
  EXPECT_THAT(member_of(line, "ordinals").get<std::vector<int>>(), ElementsAre(0, 1));
  EXPECT_EQ(member_of(line, "cpus").get<double>(), 4);
  EXPECT_EQ(member_of(line, "gpus").get<int>(), 1);
  EXPECT_EQ(member_of(line, "memory").get<std::int64_t>(), std::int64_t{16} << 30);
  EXPECT_EQ(member_of(line, "accelerator_type").get<std::string>(), "A100");
  EXPECT_EQ(to_json(member_of(line, "resources")), R"({"tpu": 2.0})");
  EXPECT_THAT(member_of(line, "command").get<std::vector<std::string>>(), ElementsAre("/opt/my program", "it's\n"));
  EXPECT_EQ(to_json(member_of(line, "variables")), R"({"HOME": "/me", "PATH": "/agents", "TOKEN": "secret"})");
  EXPECT_EQ(member_of(line, "directory").get<std::string>(), "/work dir");
  EXPECT_EQ(member_of(line, "log").get<std::string>(), "/logs/7");
}

TEST(Ray, NodesComeTogetherOnlyIfThatIsAskedFor) {
  const auto is_together = [](const NodeRequest& request) {
    const std::string line = request_line(request, {0}, {}, {});
    return std::pair(member_of(line, "together").get<bool>(), member_of(line, "strategy").get<std::string>());
  };
  EXPECT_FALSE(is_together({}).first);
  EXPECT_THAT(is_together({.all_or_none = true}), Pair(true, "STRICT_SPREAD"));
  EXPECT_THAT(is_together({.options = {{"strategy", "PACK"}}}), Pair(true, "PACK"));
}

TEST(Ray, EachFaultOfARequestIsSaid) {
  EXPECT_EQ(faults_of({.options = {{"address", "auto"}, {"python", "python3.11"}, {"strategy", "SPREAD"}}}), "");
  EXPECT_EQ(faults_of({.nodes = 0}), "0 nodes are none");
  EXPECT_EQ(faults_of({.options = {{"partition", "a100"}, {"python", ""}}}),
            "there is no option \"partition\"; there are accelerator_type, address, memory, python, resources, "
            "strategy; the option \"python\" is empty, or has a line break");
  EXPECT_THAT(faults_of({.options = {{"strategy", "pack"}}}), HasSubstr(R"(is "pack"; there are PACK, SPREAD, )"));
  for (const char* const memory : {"G", "16GB", "-1", "0", "16g", "1.5G", "9999999999G", "99999999999999999999"})
    EXPECT_THAT(faults_of({.options = {{"memory", memory}}}), HasSubstr("it must be a number of bytes")) << memory;
  for (const char* const resources : {"tpu", "[1]", "{\"tpu\": \"1\"}", "{\"tpu\": 0}", "{\"tpu\": NaN}",
                                      "{\"tpu\": Infinity}", "{\"CPU\": 1}", "{\"\": 1}"})
    EXPECT_THAT(faults_of({.options = {{"resources", resources}}}), HasSubstr("must be JSON with amounts by name"))
        << resources;
}

TEST(Ray, ThePythonIsTheOneThatIsNamedOrThatOfTheProgram) {
  EXPECT_EQ(launcher_kind({}, {.command = {"/opt/train"}}).python, "python3");
  EXPECT_EQ(launcher_kind({}, {.command = {"/venv/bin/python3.12", "-c", ""}}).python, "/venv/bin/python3.12");
  EXPECT_EQ(launcher_kind({.options = {{"python", "/other"}}}, {.command = {"/venv/bin/python3"}}).python, "/other");
  EXPECT_EQ(launcher_command({.python = "python3", .address = "a:1", .outlives = true}),
            (std::vector<std::string>{"python3", "-c", std::string(kRayLauncher),
                                      R"({"address": "a:1", "outlives": true})"}));
}

TEST(Ray, AnAgentHasNothingOfRayOrOfThisMachine) {
  EXPECT_THAT(agent_variables({{"RAY_ADDRESS", "a"},
                               {"CUDA_VISIBLE_DEVICES", "3"},
                               {"HOSTNAME", "here"},
                               {"SSH_AUTH_SOCK", "/tmp/s"},
                               {"RAYON", "kept"},
                               {"LANG", "C"}},
                              {{"LANG", "de"}}),
              UnorderedElementsAre(Pair("RAYON", "kept"), Pair("LANG", "de")));
}

TEST(Ray, EachEventIsRead) {
  const auto said = [](const char* line) { return parse_said(line, kNow); };
  EXPECT_TRUE(std::holds_alternative<Ready>(said(R"({"event": "ready"})")));
  EXPECT_EQ(std::get<Failed>(said(R"({"event": "failed", "reason": "why"})")).reason, "why");
  EXPECT_THAT(std::get<Has>(said(R"({"event": "has", "places": [[1, 0], [2, 3]]})")).places,
              ElementsAre(Pair(1, 0), Pair(2, 3)));
  EXPECT_THAT(std::get<Started>(said(R"({"event": "started", "request": 1, "ordinal": 2})")).place, Pair(1, 2));
  EXPECT_EQ(std::get<Queued>(said(R"({"event": "queued", "request": 1, "reason": "full"})")).reason, "full");
  EXPECT_EQ(std::get<Refused>(said(R"({"event": "refused", "request": 4, "reason": "no"})")).request, 4);
  const auto ended = std::get<AgentEnded>(
      said(R"({"event": "ended", "request": 1, "ordinal": 2, "reason": "signal 9", "certain": true})"));
  EXPECT_EQ(ended.ordinal, 2);
  EXPECT_TRUE(ended.is_certain);
  EXPECT_EQ(std::get<NodeEnds>(said(R"({"event": "ends", "request": 1, "ordinal": 0, "seconds": 60})")).at,
            kNow + std::chrono::seconds(60));
  EXPECT_EQ(std::get<NodeEnds>(said(R"({"event": "ends", "request": 1, "ordinal": 0, "seconds": null})")).at,
            std::nullopt);
}

TEST(Ray, WhatIsNoEventIsRefused) {
  for (const char* const line : {"", "hello", "[]", "{}", R"({"event": "joined"})",
                                 R"({"event": "ended", "request": 1})", R"({"event": "queued", "request": -1})",
                                 R"({"event": "ready", "further": 1})", R"({"event": "has", "places": [1]})"})
    EXPECT_THROW(parse_said(line, kNow), Error) << line;
}

TEST(Ray, AnEndThatIsNoTimeIsNotTakenForOne) {
  for (const char* const seconds : {"NaN", "-Infinity", "Infinity", "1e300", "-5"}) {
    const std::string line =
        std::string(R"({"event": "ends", "request": 1, "ordinal": 0, "seconds": )") + seconds + "}";
    const auto at = std::get<NodeEnds>(parse_said(line, kNow)).at;
    if (at) {
      EXPECT_GE(*at, kNow) << line;
      EXPECT_LE(*at, kNow + std::chrono::hours(24 * 366)) << line;
    }
  }
}

}  // namespace
}  // namespace cadre::engine::cluster::ray
