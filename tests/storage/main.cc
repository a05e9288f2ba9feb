// A controller of an experiment or a training run, where this program was started to be one; else the tests.
#include <gtest/gtest.h>

#include "survival/controller_process.h"
#include "training_program.h"

int main(int argc, char** argv) {
  cadre::survival::run_if_controller(argc, argv);
  cadre::storage_tests::run_if_training(argc, argv);
  cadre::survival::adopt_orphans();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
