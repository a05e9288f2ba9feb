// Experiments of tests/survival that the soak disturbs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>

#include "subject.h"
#include "survival/invariants.h"

namespace cadre::survival {

class Experiments {
 public:
  // The experiments live in `folder`; `program` is cadre, which reads them.
  Experiments(std::filesystem::path folder, std::filesystem::path program, bool are_published)
      : folder_(std::move(folder)), program_(std::move(program)), are_published_(are_published) {}

  std::unique_ptr<Subject> make(std::int64_t index, const std::string& name);

 private:
  friend class ExperimentSubject;

  // Returns the outcome of this setting, from an undisturbed run that is made at the first call.
  const Outcome& undisturbed(std::int64_t setting_number);
  Setting setting_of(std::int64_t setting_number) const;

  std::filesystem::path folder_;
  std::filesystem::path program_;
  bool are_published_;
  std::map<std::int64_t, Outcome> undisturbed_ = {};
};

}  // namespace cadre::survival
