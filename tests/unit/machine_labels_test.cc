#include "resources/machine_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace cadre::resources {
namespace {

using ::testing::HasSubstr;
using Labels = std::map<std::string, std::string>;

const Resources kMachine{.accelerator_type = "H100", .labels = {{"zone", "eu"}, {"rack", "7"}}};

std::string mismatch_of(const std::string& name, const std::string& wanted) {
  return mismatch(kMachine, {.labels = {{name, wanted}}});
}

TEST(MachineLabels, AValueIsTheOneThatTheMachineHas) {
  EXPECT_EQ(mismatch_of("zone", "eu"), "");
  EXPECT_EQ(mismatch_of("zone", "us"), "label zone=us (it is eu)");
  EXPECT_EQ(mismatch_of("disk", "ssd"), "label disk=ssd (there is none)");
}

TEST(MachineLabels, WhatItIsNotToBeIsAlsoALabelThatItLacks) {
  EXPECT_EQ(mismatch_of("zone", "!us"), "");
  EXPECT_EQ(mismatch_of("disk", "!ssd"), "");
  EXPECT_EQ(mismatch_of("zone", "!eu"), "label zone=!eu (it is eu)");
}

TEST(MachineLabels, OneOfSeveralOrNoneOfThem) {
  EXPECT_EQ(mismatch_of("zone", "in(us,eu)"), "");
  EXPECT_EQ(mismatch_of("zone", "in(us,asia)"), "label zone=in(us,asia) (it is eu)");
  EXPECT_EQ(mismatch_of("disk", "in(ssd)"), "label disk=in(ssd) (there is none)");
  EXPECT_EQ(mismatch_of("zone", "!in(us,asia)"), "");
  EXPECT_EQ(mismatch_of("zone", "!in(us,eu)"), "label zone=!in(us,eu) (it is eu)");
}

TEST(MachineLabels, AnAcceleratorTypeIsTheMachines) {
  EXPECT_EQ(mismatch(kMachine, {.accelerator_type = "H100"}), "");
  EXPECT_EQ(mismatch(kMachine, {.accelerator_type = "A100"}), "accelerator type A100 (it is H100)");
  EXPECT_EQ(mismatch({}, {.accelerator_type = "A100"}), "accelerator type A100 (there is none)");
}

TEST(MachineLabels, WhatIsNoSelectorIsSaid) {
  for (const char* text : {"", "!", "in()", "in(eu", "in(eu,)", "!in(,)", "eu us", "!!eu", "(eu)"}) {
    EXPECT_THAT(fault_of_selectors({.labels = {{"zone", text}}}), HasSubstr("of zone is none of value, !value"))
        << text;
  }
  for (const char* text : {"eu", "!eu", "in(eu)", "!in(eu,us)", "a.b-c_d/e"}) {
    EXPECT_EQ(fault_of_selectors({.labels = {{"zone", text}}}), "") << text;
  }
  EXPECT_THAT(fault_of_selectors({.labels = {{"", "eu"}}}), HasSubstr("no name of a label"));
}

TEST(MachineLabels, AMachineHasPlainValues) {
  EXPECT_EQ(fault_of_labels(kMachine), "");
  EXPECT_THAT(fault_of_labels({.labels = {{"zone", "!eu"}}}), HasSubstr("the value of zone is \"!eu\""));
  EXPECT_THAT(fault_of_labels({.labels = {{"my zone", "eu"}}}), HasSubstr("\"my zone\" is no name"));
}

TEST(MachineLabels, WhatSeveralAskForTogetherMustNotDiffer) {
  Resources wanted{.accelerator_type = "H100", .labels = {{"zone", "eu"}}};
  EXPECT_EQ(add_selectors(wanted, {.labels = {{"rack", "7"}, {"zone", "eu"}}}), "");
  EXPECT_EQ(wanted.labels, (Labels{{"rack", "7"}, {"zone", "eu"}}));
  EXPECT_EQ(add_selectors(wanted, {.labels = {{"zone", "us"}}}), "label zone is asked to be eu and us: ask for one");
  EXPECT_EQ(add_selectors(wanted, {.accelerator_type = "A100"}),
            "the accelerator type is asked to be H100 and A100: ask for one");
}

}  // namespace
}  // namespace cadre::resources
