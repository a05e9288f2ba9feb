// The local engine as a subject of the conformance suite, and directories for its workers.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/engine.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {

class LocalSubject {
 public:
  LocalSubject();
  std::unique_ptr<engine::Engine> make_engine();
  std::filesystem::path make_directory();

 private:
  test_support::TemporaryDirectory directory_;
  int directories_ = 0;
};

}  // namespace cadre::system_tests
