// The result files of one trial: params.json, result.json, progress.csv, error.txt. They follow from the store and are
// written after it. docs/formats.md describes them.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "tune/events.h"
#include "tune/loggers/progress_csv.h"

namespace cadre::tune {

class TrialFiles {
 public:
  // Existing files in the directory, which must exist, are replaced by the first thing written to each.
  explicit TrialFiles(const std::filesystem::path& directory);
  // What they hold, for a later controller to go on with.
  struct Stamp {
    base::AppendFile::Stamp json = {};
    base::AppendFile::Stamp csv = {};
    std::string errors = {};

    static void fields(auto& archive, auto& stamp) {
      archive("json", stamp.json);
      archive("csv", stamp.csv);
      archive("errors", stamp.errors);
    }
  };
  Stamp stamp() const { return {json_.stamp(), csv_.stamp(), errors_}; }
  // Goes on with the files in the directory. False, and nothing is changed that counts, when they are not what they
  // were.
  bool resume(const Stamp& stamp);
  // The same with files that nobody but this process has written.
  void resume();

  void add(const LogResult& result);
  void flush();

  // Of the trial as it is about to run.
  void write_params(const Config& config);
  void add_error(std::int64_t attempt, const std::string& message);

 private:
  std::filesystem::path directory_;
  base::AppendFile json_;
  std::string pending_json_;
  bool json_is_new_ = true;
  ProgressCsv csv_;
  std::string errors_ = {};  // what error.txt holds
};

}  // namespace cadre::tune
