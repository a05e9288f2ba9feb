// Experiments of tests/survival that the soak disturbs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>

#include "survival/invariants.h"
#include "survival/nodes.h"
#include "survival/place.h"
#include "survival/subject.h"

namespace cadre::survival {

class Experiments {
 public:
  // They live in `folder`, and `program` is cadre, which looks at them. All are published in `storage`, or none.
  Experiments(std::filesystem::path folder, std::filesystem::path program, StorageFolder storage = {})
      : folder_(std::move(folder)), program_(std::move(program)), storage_(std::move(storage)) {}

  // Has trials run on nodes, and has these disturbed, too.
  void use_nodes() { nodes_ = std::make_unique<Nodes>(folder_); }

  std::unique_ptr<Subject> make(std::int64_t index, const std::string& name);

 private:
  friend class ExperimentSubject;

  // Returns the outcome of this setting, from an undisturbed run that is made at the first call.
  const Outcome& undisturbed(std::int64_t setting_number);
  Setting setting_of(std::int64_t setting_number) const;

  std::filesystem::path folder_;
  std::filesystem::path program_;
  StorageFolder storage_;
  std::unique_ptr<Nodes> nodes_ = nullptr;
  std::map<std::int64_t, Outcome> undisturbed_ = {};
};

}  // namespace cadre::survival
