// error.txt of a trial or a training run: its failures in order. It holds the newest ones and at most 1 MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace cadre::loggers {

class ErrorFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // An existing file is replaced by the first failure.
  explicit ErrorFile(std::filesystem::path path) : file_(std::move(path)) {}

  base::AppendFile::Stamp stamp() const { return file_.stamp(); }
  // Continues the file. Returns false, without a change, if the file does not match the stamp.
  bool resume(const base::AppendFile::Stamp& stamp) { return file_.resume(stamp); }
  // Continues the present file, if there is one.
  void resume() { file_.resume(); }

  // Adds "Attempt 2: <message>". After a StorageError it can be called again, and nothing is written twice.
  void add(std::int64_t attempt, const std::string& message);

 private:
  base::AppendFile file_;
};

}  // namespace cadre::loggers
