// Training runs that the soak disturbs, with their validators.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "survival/place.h"
#include "survival/subject.h"
#include "survival/training_invariants.h"

namespace cadre::survival {

class Trainings {
 public:
  // They live in `folder`, and `program` is torch_training_controller.cc. Those that are published are in `storage`.
  Trainings(std::filesystem::path folder, std::filesystem::path program, StorageFolder storage)
      : folder_(std::move(folder)), program_(std::move(program)), storage_(std::move(storage)) {}

  // Three successive runs differ only in their validators; half of the runs are published.
  std::unique_ptr<Subject> make(std::int64_t index, const std::string& name);

 private:
  friend class TrainingSubject;

  std::filesystem::path rows() const { return folder_ / "rows"; }
  // Returns the outcome of this setting, from an undisturbed run that is made at the first call.
  const TrainingOutcome& undisturbed(const TrainingSetting& setting);

  std::filesystem::path folder_;
  std::filesystem::path program_;
  StorageFolder storage_;
  std::map<std::string, TrainingOutcome> undisturbed_ = {};               // by the setting's text
  std::map<std::string, std::map<std::int64_t, Metrics>> verdicts_ = {};  // by the text without the form
};

}  // namespace cadre::survival
