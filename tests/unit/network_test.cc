#include "base/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cadre::base {
namespace {

TEST(Network, FindsTheInterfaceOfAnAddress) {
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("203.0.113.7"), "");
  EXPECT_EQ(interface_of(""), "");
}

TEST(Network, OthersReachAMachineByNoAddressOfItsOwnOnly) {
  for (const std::string& address : outside_addresses()) {
    EXPECT_THAT(address, testing::Not(testing::AnyOf(testing::StartsWith("127."), testing::Eq("::1"))));
    EXPECT_NE(interface_of(address), "");
  }
}

}  // namespace
}  // namespace cadre::base
