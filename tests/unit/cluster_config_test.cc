// Faults of a cluster's members that are said before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cadre/cluster.h"
#include "worker/cluster.h"

namespace cadre::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClusterConfigTest : public ::testing::Test {
 protected:
  ClusterConfigTest() { ::unsetenv("SLURM_JOB_ID"); }
  ~ClusterConfigTest() override { ::unsetenv("SLURM_JOB_ID"); }
};

TEST_F(ClusterConfigTest, ALinkThatIsNoneIsNamedWithThoseThatAre) {
  EXPECT_THAT(faults_of({.engine = "processes", .link = "ssh"}),
              ElementsAre(AllOf(HasSubstr("cluster.link is \"ssh\""), HasSubstr("\"port\", \"stdio\""))));
}

TEST_F(ClusterConfigTest, StdioIsNotForJobsFromTheQueue) {
  const ClusterConfig cluster{.engine = "slurm", .link = "stdio"};
  EXPECT_THAT(faults_of(cluster), ElementsAre(AllOf(HasSubstr("this program is in no allocation of Slurm"),
                                                    HasSubstr("start the program with sbatch or salloc"))));
  ::setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_THAT(faults_of(cluster), IsEmpty());
}

TEST_F(ClusterConfigTest, StdioHasNoAddresses) {
  EXPECT_THAT(faults_of({.engine = "processes", .link = "stdio", .addresses = {"10.0.0.1"}}),
              ElementsAre(HasSubstr("cluster.addresses are 10.0.0.1, and with cluster.link \"stdio\" no node dials")));
  EXPECT_THAT(faults_of({.engine = "processes", .link = "stdio"}), IsEmpty());
}

}  // namespace
}  // namespace cadre::worker
