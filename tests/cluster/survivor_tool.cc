// An experiment to be disturbed (tests/survival), for faults_test.py:
//
//   survivor_tool run <experiment> <number of the setting>
//
// begins or continues it, on this machine or on the nodes that CADRE_CLUSTER asks for, with an exit code of Ended.
//
//   survivor_tool check <experiment> <number of the setting> [<the same experiment, undisturbed>]
//
// prints what is wrong with it, a line each; with the last argument it has finished. Exit code 1: something is. An
// experiment that is published in a directory is given by that.
//
//   survivor_tool check-training <the same run, undisturbed> <arguments of cadre_training_controller>
//
// does the same with a training run that has finished.
#include <cadre/tune.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "publish/place.h"
#include "publish/restore.h"
#include "store/tables.h"
#include "survival/controller_process.h"
#include "survival/invariants.h"
#include "survival/published.h"
#include "survival/survivor.h"
#ifdef CADRE_TRAINING_CONTROLLER
#include "survival/training_invariants.h"
#endif

namespace {

namespace survival = cadre::survival;

// Long enough for nodes that are lost and come again.
survival::Setting setting_of(std::int64_t number) {
  return {.population = 4 + number % 3,
          .steps = 600,
          .interval = 60,
          .checkpoint_interval = number % 2 == 0 ? 1 : 5,
          .num_to_keep = 1 + number % 3,
          .is_class = number % 4 == 3,
          .has_programs = number % 3 == 1};
}

std::string fault_of_checkpoint(const cadre::store::CheckpointRow& row, const std::filesystem::path& files) {
  const auto state = survival::read_state(files);
  if (!state) return "cannot be loaded";
  return state->step == row.step ? "" : "is of another step";
}

int say(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) std::cout << fault << '\n';
  return faults.empty() ? 0 : 1;
}

int check(const std::filesystem::path& given, std::int64_t number, const char* undisturbed) {
  const survival::Setting setting = setting_of(number);
  const auto uri = cadre::publish::published_at(given);
  const std::filesystem::path experiment = uri ? cadre::publish::local_directory(*uri, {}) : given;
  if (undisturbed == nullptr && !cadre::tune::Tuner::can_restore(experiment)) return 0;  // it has hardly begun
  std::vector<std::string> faults = survival::faults_of_readers(experiment, setting, "");
  survival::Expectation expectation{.finished = undisturbed != nullptr, .worker_deaths = 0, .outcome = {}};
  if (undisturbed != nullptr) expectation.outcome = survival::outcome_of(undisturbed);
  for (std::string& fault : survival::faults_of(experiment, setting, expectation)) faults.push_back(std::move(fault));
  if (uri && expectation.finished) {
    for (std::string& fault : survival::faults_of_all_published(*uri, experiment, fault_of_checkpoint))
      faults.push_back(std::move(fault));
  }
  return say(faults);
}

#ifdef CADRE_TRAINING_CONTROLLER
int check_training(const char* undisturbed, const std::vector<std::string>& arguments) {
  const survival::TrainingOrder order = survival::from_arguments(arguments);
  const auto uri = cadre::publish::published_at(order.run);
  const std::filesystem::path run = uri ? cadre::publish::local_directory(*uri, {}) : std::filesystem::path(order.run);
  return say(survival::faults_of_training(run, order.setting, survival::outcome_of_training(undisturbed)));
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 3 ? argv[1] : "";
  if (command == "run")
    survival::run_controller({.experiment = argv[2], .setting = setting_of(std::atoll(argv[3]))}, argc, argv);
#ifdef CADRE_TRAINING_CONTROLLER
  if (command == "check-training") return check_training(argv[2], {argv + 3, argv + argc});
#endif
  if (command == "check") return check(argv[2], std::atoll(argv[3]), argc > 4 ? argv[4] : nullptr);
  return 2;
}
