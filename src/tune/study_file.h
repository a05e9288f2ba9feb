// The file of a study, so that it outlives the processes that use it. docs/formats.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/file_descriptor.h"
#include "cadre/tune/tuner.h"
#include "cadre/value.h"

namespace cadre::tune {

// The first line.
struct StudyHeader {
  static constexpr std::int64_t kFormat = 1;

  std::int64_t study = kFormat;
  Space param_space = {};
  TuneConfig tune_config = {};
};

// Any other line: a trial that was made, or a result or the end of one.
struct StudyChange {
  std::optional<TrialIndex> add = {};
  std::optional<Value> config = {};
  std::optional<TrialIndex> result = {};
  std::optional<TrialIndex> end = {};
  std::optional<TrialStatus> status = {};
  std::optional<Value> metrics = {};
};

// A trial as the changes made it.
struct StudyTrial {
  Config config = {};
  std::vector<Metrics> results = {};
  std::optional<TrialStatus> end = {};  // empty: it is open
  bool succeeded = false;               // ended with a result of its own

  Metrics last_result() const { return results.empty() ? Metrics() : results.back(); }
};

// Carries a change out. Throws NotFound if it is about a trial that is not open, or adds one out of order.
void carry_out(const StudyChange& change, std::vector<StudyTrial>& trials);

// Reads a header. Throws StorageError that names the file if it is none, or of another version.
StudyHeader read_study_header(const Value& line, const std::filesystem::path& file);

// A text file with a JSON document a line, of which this process is the only user. Errors are StorageError.
class StudyFile {
 public:
  // Returns true if the directory holds a study.
  static bool exists(const std::filesystem::path& directory);
  // Returns the documents of the file in a directory, which another process may have open.
  static std::vector<Value> read(const std::filesystem::path& directory);

  // Opens the file in a directory, or creates both. Waits while another process has it open, at most a minute.
  explicit StudyFile(const std::filesystem::path& directory);

  // Returns the documents of the file. A last line that was not written to its end is removed from it.
  std::vector<Value> read();
  // Adds a document. It is on the disk afterwards; after an error the file is as before.
  void append(const Dict& document);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  base::FileDescriptor file_;
  std::uintmax_t size_ = 0;  // bytes
};

}  // namespace cadre::tune
