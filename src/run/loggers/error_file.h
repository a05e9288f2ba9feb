// error.txt of a trial or a training run: its failures, one after the other. It holds the newest ones and at most 1
// MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace cadre::run {

class ErrorFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // An existing file is replaced by the first failure.
  explicit ErrorFile(std::filesystem::path path) : file_(std::move(path)) {}

  base::AppendFile::Stamp stamp() const { return file_.stamp(); }
  // Goes on with the file as it was. False, and nothing is changed, when it is not what it was.
  bool resume(const base::AppendFile::Stamp& stamp) { return file_.resume(stamp); }
  // The same as it is, where there is one.
  void resume() { file_.resume(); }

  // "Attempt 2: why". After a StorageError it can be called again, and nothing is written twice.
  void add(std::int64_t attempt, const std::string& message);

 private:
  base::AppendFile file_;
};

}  // namespace cadre::run
