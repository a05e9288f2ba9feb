// What happened in a store from one moment to another, as a file: a store is published as a row of such segments, and
// made again from them. docs/formats.md describes the file.
//
// A segment has the rows of `results`, `events` and `decisions` that were added, and those of the other tables that
// changed; no snapshots, which are for the program that took them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/tables.h"

namespace cadre::store {

// How far a store is. Two stores of one experiment with the same row under a number are the same up to there.
struct Position {
  std::int64_t sequence = 0;  // of the last result or event; 0: none
  std::int64_t row = 0;       // its checksum
  std::int64_t decision = 0;  // id of the last decision; 0: none
  bool operator==(const Position&) const = default;
};

// Of the store in a directory, which nobody may be writing. Throws what ExperimentReader does.
Position position_of(const std::filesystem::path& directory);
// Whether a store is at this position, or was.
bool has_passed(const std::filesystem::path& directory, const Position& position);
// Whether the experiment in the store has come to its end.
bool is_finished(const std::filesystem::path& directory);

// Makes the segments of one store, one after the other, while it is being written. Belongs to one thread.
class SegmentWriter {
 public:
  explicit SegmentWriter(std::filesystem::path directory);
  ~SegmentWriter();

  // What a segment is to reach back to.
  struct Range {
    Position after = {};        // what the segments before it have
    std::int64_t first = 0;     // the number of the first segment whose place it takes; its own where there is none
    std::int64_t number = 0;    // its own; ascends
    bool whole_tables = false;  // nothing is known of what the segments before have in tables whose rows change
  };
  struct Segment {
    Position position = {};                       // that it leads to
    std::vector<CheckpointRow> checkpoints = {};  // that exist there
  };

  // Writes a segment for the store as it is now into a new file. Empty, and no file, where nothing has changed since
  // the last one that was kept. Throws OutOfSpace or StorageError.
  std::optional<Segment> write(const std::filesystem::path& file, const Range& range);
  // The last segment was published: the next one says what has changed since. Without that, since the one before.
  void keep();

 private:
  struct Known {
    std::int64_t checksum = 0;
    std::int64_t number = 0;  // of the segment that had it first
  };
  // What the segments have in tables whose rows change.
  struct Tables {
    std::map<std::string, Known> facts;
    std::map<std::int64_t, Known> trials;  // by number
    std::int64_t first_open_trial = 0;
    std::map<std::int64_t, Known> checkpoints;
    Position position;
  };
  class Draft;

  std::filesystem::path directory_;
  Tables kept_;
  std::optional<Tables> drafted_;
};

// Says of checkpoints in a segment's file that their files are safe, and what these are: a list for each, as JSON.
void set_manifests(const std::filesystem::path& segment, const std::map<std::int64_t, std::string>& manifests);

// Makes the store of a directory from segments, in order. Throws StorageError that names the segment that does not fit;
// there is no store then.
void build_store(const std::filesystem::path& directory, const std::vector<std::filesystem::path>& segments);

}  // namespace cadre::store
