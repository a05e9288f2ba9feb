// The TensorBoard event file of a trial or a training run, events.out.tfevents.<unix seconds>.<hostname>: its results
// as scalars and histograms, and, when a trial ends, its hyper-parameters for the HPARAMS tab. docs/formats.md
// describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file.h"
#include "cadre/value.h"
#include "loggers/tensorboard_events.h"

namespace cadre::loggers {

class TensorBoardFile {
 public:
  static constexpr std::string_view kNamePrefix = "events.out.tfevents.";

  // The file is created with the first result. It replaces a file that an earlier controller has left in the directory.
  explicit TensorBoardFile(std::filesystem::path directory) : directory_(std::move(directory)) {}

  struct Stamp {
    std::string name = {};  // empty: none was written yet
    base::AppendFile::Stamp content = {};
  };
  Stamp stamp() const;
  // Continues the file. Returns false, without a change, if the file does not match the stamp.
  bool resume(const Stamp& stamp);
  // Continues the file of a trial that had ended and runs again.
  void resume();

  // Adds a result, flattened, with the time of its report (seconds since 1970).
  void add(const Dict& flat_row, double time) { add(flat_row, flat_row, time); }
  // Adds values at the step of another result that was added before.
  void add(const Dict& flat_values, const Dict& flat_row, double time);
  // Adds the session of a trial that has ended. Sets its start_time and metric_tags from the added results and the last
  // result, flattened. Does nothing if there was no result, if there are no hparams, or if it was called before.
  void end(tensorboard::Session session, const Dict& last_flat_row);
  // Writes the added records. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  std::size_t waiting_bytes() const { return pending_.size(); }

 private:
  // The kind of a tag's values. TensorBoard shows one kind per tag: the first one.
  enum class Kind { scalar, histogram };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void begin(const Dict& flat_row, double time);
  void go_on(const std::string& content);
  const std::string& tag_of(std::string_view key, Kind kind);
  void append_value(const std::string& key, const Value& value);
  void remove_older_files();

  std::filesystem::path directory_;
  std::optional<base::AppendFile> file_ = {};  // none before the first result
  bool is_new_ = false;                        // the file is not on the disk yet
  bool ended_ = false;
  double start_time_ = 0;
  std::unordered_map<std::string, Kind, Hash, std::equal_to<>> kinds_;  // by tag
  std::string pending_;                                                 // records that were not written yet
  std::string summary_;                                                 // summary of the present result
  std::string tag_;
};

}  // namespace cadre::loggers
