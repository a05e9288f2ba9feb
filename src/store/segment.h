// Segments: files with what happened in a store from one moment to another. A store is published as a sequence of
// segments, and is rebuilt from them. docs/formats.md describes the file.
//
// A segment has the rows of `results`, `events` and `decisions` that were added, and the rows of the other tables that
// changed. It has no snapshots: only the program that wrote a snapshot can use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/read_store.h"

namespace cadre::store {

// Returns the position of the store in a directory, which no process may be writing. Throws what ExperimentReader
// throws.
Position position_of(const std::filesystem::path& directory);
// Returns true if a store is at this position or past it.
bool has_passed(const std::filesystem::path& directory, const Position& position);
// Returns true if the experiment in the store has finished.
bool is_finished(const std::filesystem::path& directory);

// Writes the segments of one store, one after the other, while the store is being written. Used by one thread only.
class SegmentWriter {
 public:
  explicit SegmentWriter(std::filesystem::path directory);
  ~SegmentWriter();

  // Range of rows of a segment.
  struct Range {
    Position after = {};            // end of the segments before it
    std::int64_t after_number = 0;  // number of the last one of them; 0: there is none
    std::int64_t number = 0;        // its own number; ascends
    bool replaces = false;          // it takes the place of segments that followed those
    bool whole_tables = false;      // include all rows of the changing tables: earlier ones are unknown
  };
  struct Segment {
    Position position = {};                       // the end of the segment
    std::vector<CheckpointRow> checkpoints = {};  // all that exist at `position`
  };

  // Writes a segment of the store's present state into a new file. Returns nothing, and leaves no file, if nothing has
  // changed since the last segment that was kept. Throws OutOfSpace or StorageError.
  std::optional<Segment> write(const std::filesystem::path& file, const Range& range);
  // Marks the last segment as published: the next one has the changes since it. Without this call the next one has the
  // changes since the segment kept before.
  void keep();

 private:
  struct Known {
    std::int64_t checksum = 0;
    std::int64_t number = 0;  // number of the first segment that has this row
  };
  // Rows that the segments have of the changing tables.
  struct Tables {
    std::map<std::string, Known> facts;
    std::map<std::int64_t, Known> trials;  // by trial number
    std::int64_t first_open_trial = 0;
    std::map<std::int64_t, Known> checkpoints;
    Position position;
  };
  class Draft;

  std::filesystem::path directory_;
  Tables kept_;
  std::optional<Tables> drafted_;
};

// Marks checkpoints in a segment's file as synced, and sets their manifests: by checkpoint id, each a JSON list of its
// files.
void set_manifests(const std::filesystem::path& segment, const std::map<std::int64_t, std::string>& manifests);

// Paths of checkpoints in the storage, by checkpoint id.
using Places = std::map<std::int64_t, std::string>;
// Notes in a segment's file where checkpoints are that have a place of their own in the storage; leaves out those of
// which the segment has no row.
void set_places(const std::filesystem::path& segment, const Places& places);

// Builds a directory's store from segments, in order. Returns the places of checkpoints that the segments note. Throws
// StorageError, naming the segment, if one does not follow the one before; there is no store then.
Places build_store(const std::filesystem::path& directory, const std::vector<std::filesystem::path>& segments);

}  // namespace cadre::store
