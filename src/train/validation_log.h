// validations.json: a line for each validation that has come to its end. It follows from the store and is written after
// it, as the other result files (run/loggers/result_log.h). docs/formats.md describes it.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "train/events.h"

namespace cadre::train {

class ValidationLog {
 public:
  static constexpr const char* kFileName = "validations.json";

  // An existing file is replaced by the first line.
  explicit ValidationLog(const std::filesystem::path& directory) : file_(directory / kFileName) {}

  // `time` is that of its end, in seconds since 1970.
  void add(const ShowValidation& validation, double time);
  // Writes the lines that wait. After a StorageError it can be called again.
  void flush();

 private:
  base::AppendFile file_;
  std::string pending_;
  bool is_new_ = true;
};

}  // namespace cadre::train
