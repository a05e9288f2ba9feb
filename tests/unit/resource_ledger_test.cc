#include "resources/resource_ledger.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace cadre::resources {
namespace {

TEST(ResourceLedger, GivesWhatIsThereAndNoMore) {
  ResourceLedger ledger({.cpus = 2, .custom = {{"license", 1}}});
  EXPECT_TRUE(ledger.acquire({.cpus = 1, .custom = {{"license", 1}}}));
  EXPECT_FALSE(ledger.acquire({.cpus = 1, .custom = {{"license", 1}}}));
  EXPECT_TRUE(ledger.acquire({.cpus = 1}));
  EXPECT_FALSE(ledger.acquire({.cpus = 0.0001}));
  ledger.release({.cpus = 1}, {});
  EXPECT_TRUE(ledger.acquire({.cpus = 1}));
}

TEST(ResourceLedger, TenTenthsAreOne) {
  ResourceLedger ledger({.cpus = 1});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ledger.acquire({.cpus = 0.1})) << i;
  EXPECT_FALSE(ledger.acquire({.cpus = 0.1}));
}

TEST(ResourceLedger, NothingIsTakenWhenOneAmountIsMissing) {
  ResourceLedger ledger({.cpus = 2, .gpus = 0});
  EXPECT_FALSE(ledger.acquire({.cpus = 2, .gpus = 1}));
  EXPECT_TRUE(ledger.acquire({.cpus = 2}));
}

TEST(ResourceLedger, SharesOfAGpuAreOnOneGpuAndFillItFirst) {
  ResourceLedger ledger({.cpus = 9, .gpus = 2});
  const Resources share{.cpus = 0, .gpus = 0.4};
  EXPECT_EQ(ledger.acquire(share), (Gpus{0}));
  EXPECT_EQ(ledger.acquire(share), (Gpus{0}));
  EXPECT_EQ(ledger.acquire(share), (Gpus{1}));
  EXPECT_EQ(ledger.usage(), "0/9 CPUs, 1.2/2 GPUs");
  EXPECT_FALSE(ledger.is_free({.cpus = 0, .gpus = 1}));  // 0.8 GPUs are free, but no whole one
  EXPECT_EQ(ledger.acquire({.cpus = 0, .gpus = 0.2}), (Gpus{0}));
  ledger.release(share, {1});
  EXPECT_EQ(ledger.acquire({.cpus = 0, .gpus = 1}), (Gpus{1}));
}

TEST(ResourceLedger, WholeGpusAreWhole) {
  ResourceLedger ledger({.cpus = 9, .gpus = 4});
  ASSERT_EQ(ledger.acquire({.cpus = 1, .gpus = 0.5}), (Gpus{0}));
  EXPECT_EQ(ledger.acquire({.cpus = 1, .gpus = 2}), (Gpus{1, 2}));
  EXPECT_FALSE(ledger.acquire({.cpus = 1, .gpus = 2}));
  ledger.release({.cpus = 1, .gpus = 0.5}, {0});
  EXPECT_EQ(ledger.acquire({.cpus = 1, .gpus = 2}), (Gpus{0, 3}));
}

TEST(ResourceLedger, WhoWantsCertainGpusGetsThemOrNone) {
  ResourceLedger ledger({.cpus = 9, .gpus = 2});
  const Resources half{.cpus = 1, .gpus = 0.5};
  EXPECT_EQ(ledger.acquire(half, Gpus{1}), (Gpus{1}));
  EXPECT_EQ(ledger.acquire(half, Gpus{1}), (Gpus{1}));
  EXPECT_FALSE(ledger.acquire(half, Gpus{1}));
  EXPECT_TRUE(ledger.is_free(half));
}

TEST(ResourceLedger, AShortageNamesTheResources) {
  const ResourceLedger ledger({.cpus = 2});
  EXPECT_EQ(ledger.shortage({.cpus = 2}), "");
  EXPECT_EQ(ledger.shortage({.cpus = 1, .gpus = 1}), "1 gpus (there are 0)");
  EXPECT_EQ(ledger.shortage({.cpus = 1, .custom = {{"license", 0.5}}}), "0.5 license (there are 0)");
  EXPECT_EQ(ledger.shortage({.cpus = 3, .gpus = 1}), "3 cpus (there are 2), 1 gpus (there are 0)");
}

TEST(ResourceLedger, AMachineThatIsNotAsItIsWantedHasNothingFree) {
  ResourceLedger ledger({.cpus = 2, .labels = {{"zone", "eu"}}});
  EXPECT_FALSE(ledger.acquire({.cpus = 1, .labels = {{"zone", "us"}}}));
  EXPECT_EQ(ledger.shortage({.cpus = 1, .labels = {{"zone", "us"}}}), "label zone=us (it is eu)");
  EXPECT_TRUE(ledger.acquire({.cpus = 2, .labels = {{"zone", "eu"}}}));
}

// A store that was changed by hand may contain such amounts.
TEST(ResourceLedger, HasNoAmountsThatNoMachineHas) {
  for (const double amount : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(ResourceLedger({.cpus = amount}), std::invalid_argument) << amount;
    EXPECT_THROW(ResourceLedger({.gpus = amount}), std::invalid_argument) << amount;
    EXPECT_THROW(ResourceLedger({.custom = {{"license", amount}}}), std::invalid_argument) << amount;
  }
  EXPECT_THROW(ResourceLedger({.gpus = 1e6}), std::invalid_argument);
  EXPECT_NO_THROW(ResourceLedger({.cpus = 1e6, .gpus = 1000, .custom = {{"bytes", 9e14}}}));
}

TEST(ResourceLedger, UsageIsForPeople) {
  ResourceLedger ledger({.cpus = 2, .custom = {{"license", 3}}});
  ledger.acquire({.cpus = 0.5, .custom = {{"license", 2}}});
  EXPECT_EQ(ledger.usage(), "0.5/2 CPUs, 0/0 GPUs, 2/3 license");
}

TEST(ResourceLedger, GpusAreOfTheWantedKind) {
  ResourceLedger ledger({.cpus = 8, .gpus = 4, .accelerator_type = "A100,A10G,A100,A10G"});
  const Resources a10g{.cpus = 1, .gpus = 1, .accelerator_type = "A10G"};
  const Resources half{.cpus = 1, .gpus = 0.5, .accelerator_type = "A100"};
  EXPECT_EQ(ledger.acquire(a10g), Gpus({1}));
  EXPECT_EQ(ledger.acquire(half), Gpus({0}));
  EXPECT_EQ(ledger.acquire({.cpus = 1, .gpus = 0.5}), Gpus({0})) << "any kind goes where the least stays free";
  EXPECT_EQ(ledger.acquire(a10g), Gpus({3}));
  EXPECT_EQ(ledger.acquire(a10g), std::nullopt) << "an A100 is free, and not wanted";
  EXPECT_TRUE(ledger.is_free(half));
  ledger.release(a10g, {1});
  EXPECT_EQ(ledger.acquire(a10g, Gpus({0, 1})), Gpus({1}));
  EXPECT_EQ(ledger.shortage(a10g), "");
  EXPECT_EQ(ledger.shortage({.gpus = 3, .accelerator_type = "A10G"}), "3 gpus of kind A10G (there are 2)");
  EXPECT_EQ(ledger.shortage({.gpus = 3}), "");
  EXPECT_EQ(ledger.shortage({.gpus = 1, .accelerator_type = "H100"}),
            "accelerator type H100 (it is A100,A10G,A100,A10G)");
}

}  // namespace
}  // namespace cadre::resources
