// Functions of a host in a program that has none, and as they are stored. tests/host runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/stored.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "tune/description.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;
using ::testing::Not;

Trainable trainable_of_a_host() {
  Trainable trainable("trains");
  trainable.host_function.value = Value{{"made", "from"}};
  return trainable;
}

TEST(HostFunction, IsStoredOnlyIfItIsSet) {
  EXPECT_EQ(to_stored(SampleFrom("f")), Value(Dict{{"function", "f"}}));
  SampleFrom of_host("f");
  of_host.host_function.value = 5;
  EXPECT_EQ(to_stored(of_host), Value(Dict{{"function", "f"}, {"host_function", 5}}));
  EXPECT_EQ(from_value<SampleFrom>(to_stored(of_host)), of_host);
  EXPECT_EQ(from_value<SampleFrom>(to_stored(SampleFrom("f"))), SampleFrom("f"));
}

TEST(HostFunction, OfATrainableIsAPartOfTheDescription) {
  const Dict described = describe(trainable_of_a_host(), {});
  const Description read = parse_description(described, "here");
  EXPECT_EQ(read.trainable.host_function, trainable_of_a_host().host_function);
}

TEST(HostFunction, IsRefusedWhereThereIsNoHost) {
  SampleFrom draws("draws");
  draws.host_function.value = 1;
  FunctionStopper stops("stops");
  stops.host_function.value = 1;
  ResourceFunction allots("allots");
  allots.host_function.value = 1;
  ExploreFunction explores("explores");
  explores.host_function.value = 1;
  const std::string message = message_of<InvalidArgument>([&] {
    Tuner(with_resources(trainable_of_a_host(), allots),
          {.param_space = {{"x", draws}},
           .tune_config = {.scheduler = PopulationBasedTraining{.time_attr = "training_iteration",
                                                                .metric = maximize("score"),
                                                                .perturbation_interval = 1,
                                                                .custom_explore_fn = explores}},
           .run_config = {.stop = stops}});
  });
  for (const char* name : {"trains", "draws", "stops", "allots", "explores"})
    EXPECT_THAT(message, HasSubstr('"' + std::string(name) + "\" is a function of a host, such as a Python program"));
  EXPECT_THAT(message, Not(HasSubstr("fn<")));
}

}  // namespace
}  // namespace cadre::tune
