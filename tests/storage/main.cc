// Runs a controller of an experiment or a training run if the program was started as one, otherwise the tests.
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
