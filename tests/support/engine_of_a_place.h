// An engine of which a work place asks where its workers work, and nothing else.
#pragma once

#include <filesystem>
#include <utility>

#include "engine/forwarding_engine.h"

namespace cadre::test_support {

class EngineWhoseWorkersWorkIn final : public engine::ForwardingEngine {
 public:
  // `directory`: empty: the run's.
  explicit EngineWhoseWorkersWorkIn(std::filesystem::path directory)
      : ForwardingEngine(static_cast<Engine&>(*this)), directory_(std::move(directory)) {}
  std::filesystem::path directory_of_workers(engine::NodeId) const override { return directory_; }
  bool carries_files() const override { return false; }

 private:
  std::filesystem::path directory_;
};

}  // namespace cadre::test_support
