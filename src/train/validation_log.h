// validations.json: a line for each finished validation. Derived from the store and written after it, like the other
// result files (loggers/result_log.h). docs/formats.md describes it.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "train/events.h"

namespace cadre::train {

class ValidationLog {
 public:
  static constexpr const char* kFileName = "validations.json";

  // The first line replaces an existing file.
  explicit ValidationLog(const std::filesystem::path& directory) : file_(directory / kFileName) {}

  // `time` is the end of the validation, in seconds since 1970.
  void add(const ShowValidation& validation, double time);
  // Writes the pending lines. Can be repeated after a StorageError.
  void flush();

 private:
  base::AppendFile file_;
  std::string pending_;
  bool is_new_ = true;
};

}  // namespace cadre::train
