// Calls cadre::init, then runs the tests.
#include <gtest/gtest.h>

#include "cadre/init.h"

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 4, .num_gpus = 2});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
