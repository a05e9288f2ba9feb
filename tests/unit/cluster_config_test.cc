#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cadre/cluster.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "worker/cluster.h"

namespace cadre::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClusterConfig, TheDefaultsHaveNoFault) {
  EXPECT_THAT(faults_of(ClusterConfig()), IsEmpty());
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "processes", .groups = {{.nodes = 2}}}), IsEmpty());
  EXPECT_THAT(faults_of(ClusterConfig{.groups = {{.options = {{"partition", "a100"}}}}}), IsEmpty());
}

TEST(ClusterConfig, EachFaultIsSaidWithItsMember) {
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "slrum"}),
              ElementsAre(R"(cluster.engine is "slrum"; there are "slurm", "ray", "commands", "processes")"));
  EXPECT_THAT(faults_of(ClusterConfig{.groups = {}}), ElementsAre("cluster.groups is empty"));
  EXPECT_THAT(faults_of(ClusterConfig{.groups = {{.name = "a", .nodes = -1, .cpus = -2, .gpus = -3}}}),
              ElementsAre(R"(cluster.groups: nodes of "a" is -1)", R"(cluster.groups: cpus of "a" is -2)",
                          R"(cluster.groups: gpus of "a" is -3)"));
  EXPECT_THAT(faults_of(ClusterConfig{.patience = 24s}),
              ElementsAre(HasSubstr("cluster.patience is 24 s; it must be")));
  EXPECT_THAT(faults_of(ClusterConfig{.nodes_stay = -1s}), ElementsAre(HasSubstr("cluster.nodes_stay is -1 s")));
  EXPECT_THAT(faults_of(ClusterConfig{.nodes_stay = 25h}), ElementsAre(HasSubstr("cluster.nodes_stay is 90000 s")));
  EXPECT_THAT(faults_of(ClusterConfig{.drain_before = -1s}), ElementsAre(HasSubstr("cluster.drain_before is -1 s")));
  EXPECT_THAT(faults_of(ClusterConfig{.link = "ports"}), ElementsAre(HasSubstr("cluster.link is \"ports\"")));
}

TEST(ClusterConfig, AddressesAreThoseOfTheInternetProtocolAndNoNames) {
  EXPECT_THAT(faults_of(ClusterConfig{.addresses = {"10.0.0.1", "fd00::1"}}), IsEmpty());
  for (const char* const address : {"login01", "10.0.0.1:5000", "[fd00::1]", "10.0.0.1,10.0.0.2", ""})
    EXPECT_THAT(faults_of(ClusterConfig{.addresses = {address}}),
                ElementsAre(HasSubstr(fmt::format("cluster.addresses has \"{}\", which is no IP address", address))));
}

TEST(ClusterConfig, NodesOnDemandAreFewerThanAllAndTheirGroupsHaveNamesThatAreLabels) {
  const auto with = [](NodeGroup group) {
    return faults_of(ClusterConfig{.engine = "ray", .groups = {std::move(group)}});
  };
  EXPECT_THAT(with({.name = "a", .nodes = 2, .min_nodes = 0, .linger = 0s}), IsEmpty());
  EXPECT_THAT(with({.name = "a", .nodes = 2, .min_nodes = 3}),
              ElementsAre(R"(cluster.groups: "a": min_nodes is 3; it must be from 0 to nodes, which is 2)"));
  EXPECT_THAT(with({.name = "a", .nodes = 2, .min_nodes = -1}),
              ElementsAre(HasSubstr("min_nodes is -1; it must be from 0")));
  EXPECT_THAT(with({.name = "a", .linger = -1s}),
              ElementsAre(HasSubstr("linger is -1 s; it must be from 0 to 86400 s")));
  for (const double price : {-1.0, std::nan(""), HUGE_VAL})
    EXPECT_THAT(with({.name = "a", .price = price}), ElementsAre(HasSubstr("it must be a number of at least 0")));
  EXPECT_THAT(with({.name = "a", .nodes = 2, .min_nodes = 0, .options = {{"strategy", "SPREAD"}}}),
              ElementsAre(HasSubstr("min_nodes goes with no strategy")));
  EXPECT_THAT(with({.name = "a, b"}),
              ElementsAre(HasSubstr("the name is that of a label, too: the value of group is \"a, b\"")));
  const NodeGroup same{.name = "a", .nodes = 2, .min_nodes = 1};
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "processes", .groups = {same, same}}),
              ElementsAre(HasSubstr("two have the same name")));
}

TEST(ClusterConfig, OverStandardStreamsNobodyDials) {
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "processes", .link = "stdio"}), IsEmpty());
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "processes", .link = "stdio", .addresses = {"10.0.0.1"}}),
              ElementsAre(HasSubstr("cluster.addresses are 10.0.0.1, and with cluster.link \"stdio\" no node dials")));
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "ray", .link = "stdio"}),
              ElementsAre(HasSubstr("actors of Ray have no input and output here; let the nodes dial")));
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_THAT(faults_of(ClusterConfig{.link = "stdio"}), ElementsAre(HasSubstr("this program is in no allocation")));
}

TEST(ClusterConfig, CommandsAreForTheirEngineAndSuitTheirGroups) {
  const NodeCommands remote_shell{.submit = {"ssh", "{host}", "sh"}};
  const NodeGroup two_hosts{.name = "a", .options = {{"hosts", "n1,n2"}}};
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "commands", .groups = {two_hosts}, .commands = remote_shell}),
              IsEmpty());
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "commands", .commands = remote_shell}),
              ElementsAre(HasSubstr(R"(cluster.groups: "nodes" has no option "hosts")")));
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "commands"}),
              ElementsAre(HasSubstr("cluster.commands.submit is empty")));
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "processes", .commands = remote_shell}),
              ElementsAre(R"(cluster.commands are for the engine "commands", and cluster.engine is "processes")"));
}

TEST(ClusterConfig, OptionsAreForEnginesThatHaveThem) {
  EXPECT_THAT(
      faults_of(ClusterConfig{.engine = "processes", .groups = {{.name = "a", .options = {{"partition", "a100"}}}}}),
      ElementsAre(R"(cluster.groups: "a" has the option "partition", and the engine "processes" has none)"));
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "ray", .groups = {{.name = "a", .options = {{"partition", "a100"}}}}}),
              ElementsAre(HasSubstr(R"(cluster.groups: "a": there is no option "partition"; there are accelerator)")));
  EXPECT_THAT(faults_of(ClusterConfig{.engine = "ray", .groups = {{.options = {{"strategy", "PACK"}}}}}), IsEmpty());
}

TEST(FindCluster, TheVariablesClusterIsThatOfLaterCallsTooAndNoProgramInheritsIt) {
  ::setenv(cluster_variable, "processes", 1);
  EXPECT_EQ(find_cluster({}).value().engine, "processes");
  EXPECT_EQ(std::getenv(cluster_variable), nullptr);
  EXPECT_EQ(find_cluster(ClusterConfig{.engine = "slurm"}).value().engine, "slurm");
  EXPECT_EQ(find_cluster({}).value().engine, "processes");
  ::setenv(cluster_variable, "", 1);
  EXPECT_FALSE(find_cluster({}).has_value());
  EXPECT_FALSE(find_cluster({}).has_value());
}

TEST(FindCluster, AFileThatCannotBeLookedAtIsAnErrorThatSaysWhy) {
  const test_support::TemporaryDirectory directory;
  const std::filesystem::path loop = directory.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  set_cluster(loop);
  const std::string message = test_support::message_of<InvalidArgument>([] { find_cluster({}); });
  EXPECT_THAT(message, HasSubstr(loop.string() + " does not describe a cluster: "));
  EXPECT_THAT(message, HasSubstr("Too many levels of symbolic links"));
  ::setenv(cluster_variable, "", 1);
  EXPECT_FALSE(find_cluster({}).has_value());
}

TEST(FindCluster, AnEngineIsMeantThoughThereIsAFileOfItsName) {
  const test_support::TemporaryDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  std::filesystem::create_directory("ray");
  set_cluster("ray");
  std::filesystem::current_path(before);
  EXPECT_EQ(find_cluster({}).value().engine, "ray");
  ::setenv(cluster_variable, "", 1);
  EXPECT_FALSE(find_cluster({}).has_value());
}

}  // namespace
}  // namespace cadre::worker
