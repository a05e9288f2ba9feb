// The TensorBoard event file of a trial or a training run, events.out.tfevents.<unix seconds>.<hostname>: its results
// as scalars and histograms, and at a trial's end what it was run with, for the HPARAMS tab. docs/formats.md describes
// it.
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
#include "run/loggers/tensorboard_events.h"

namespace cadre::run {

class TensorBoardFile {
 public:
  static constexpr std::string_view kNamePrefix = "events.out.tfevents.";

  // The file is begun with the first result, in the place of one that an earlier controller has left in the directory.
  explicit TensorBoardFile(std::filesystem::path directory) : directory_(std::move(directory)) {}

  struct Stamp {
    std::string name = {};  // empty: none was written yet
    base::AppendFile::Stamp content = {};

    static void fields(auto& archive, auto& stamp) {
      archive("name", stamp.name);
      archive("content", stamp.content);
    }
  };
  Stamp stamp() const;
  // Goes on with the file as it was. False, and nothing is changed, when it is not what it was.
  bool resume(const Stamp& stamp);
  // Goes on with the file of a trial that had ended, and runs again.
  void resume();

  // A result, flattened, and when it was reported (seconds since 1970).
  void add(const Dict& flat_row, double time);
  // It has ended: `session` says how, but for start_time and metric_tags, which follow from what was added and from the
  // last result, flattened. Nothing where there was no result, where there are no hparams, or where it was already
  // ended.
  void end(tensorboard::Session session, const Dict& last_flat_row);
  // Writes what was added. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  std::size_t waiting_bytes() const { return pending_.size(); }

 private:
  // What a tag holds. TensorBoard shows one kind a tag: that which came first.
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
  bool is_new_ = false;                        // it is not on the disk yet
  bool ended_ = false;
  double start_time_ = 0;
  std::unordered_map<std::string, Kind, Hash, std::equal_to<>> kinds_;  // by tag
  std::string pending_;                                                 // records that were not written yet
  std::string summary_;                                                 // of the result at hand
  std::string tag_;
};

}  // namespace cadre::run
