// The local engine as a subject of the conformance suite, and directories for its workers.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/engine.h"

namespace cadre::system_tests {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class LocalSubject {
 public:
  std::unique_ptr<engine::Engine> make_engine();
  std::filesystem::path make_directory();

 private:
  TemporaryDirectory directory_;
  int directories_ = 0;
};

}  // namespace cadre::system_tests
