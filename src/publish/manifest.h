// The manifest of a published experiment or training run: one object, written last, so that everything it names
// exists. docs/formats.md describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/remote_directory.h"
#include "store/segment.h"

namespace cadre::publish {

inline constexpr const char* kManifestFile = "published.json";
inline constexpr std::string_view kSegmentFolder = "store";

struct SegmentEntry {
  std::int64_t number = 0;      // ascending
  std::int64_t generation = 1;  // of the controller that wrote it
  std::int64_t level = 0;       // depth of merging; 0: not merged
  store::Position position = {};
  std::int64_t bytes = 0;
  std::string xxh3 = {};  // 16 hexadecimal digits
};
// Returns "store/00000012.segment" for the first generation, "store/00000012.generation_2.segment" for the second.
std::string segment_name(const SegmentEntry& entry);
// Returns the generation in a name made by segment_name(); empty for other names.
std::optional<std::int64_t> generation_of_segment(std::string_view name);

// A period in which one controller publishes, from its takeover to the next one; numbered from 1. Each generation uses
// its own names for what it writes, so that no controller can change or remove objects of another, however late its
// requests arrive. An entry assigns a range of checkpoints to their generation.
struct Generation {
  std::int64_t first_checkpoint = 0;  // id; the range ends before that of the next entry
  std::int64_t number = 0;
};

struct Manifest {
  std::int64_t generation = 0;               // of the writer; 0: never written
  std::string writer = {};                   // token of the writer
  std::vector<Generation> generations = {};  // of all listed checkpoints, by ascending ids
  std::int64_t next_checkpoint = 0;          // greater than the ids of all checkpoints ever published
  std::vector<SegmentEntry> segments = {};
  double time = 0;  // time of writing, seconds since 1970

  store::Position position() const { return segments.empty() ? store::Position() : segments.back().position; }
  // Returns the generation of a listed checkpoint.
  std::int64_t generation_of(std::int64_t checkpoint) const;
};

// Returns the path of a checkpoint in the storage: its directory, "<directory>.generation_2" for the second
// generation.
std::string checkpoint_place(const std::string& directory, std::int64_t generation);
// Returns the description of a checkpoint whose files are only in the storage.
storage::Remote remote_of(const std::string& directory, Dict files, std::int64_t generation);
// The parts of a path made by checkpoint_place().
struct PlaceName {
  std::string_view directory;
  std::int64_t generation = 1;
};
PlaceName part_place(std::string_view place);

std::string to_text(const Manifest& manifest);
// Throws StorageError, naming `source`, if the text is damaged or has an unknown format.
Manifest parse_manifest(std::string_view text, const std::string& source);

// A plan for the next segment: it replaces all but the first `kept` segments and has the level `level`. So the number
// of segments that a restore reads grows logarithmically with the number of segments written.
struct Merge {
  std::size_t kept = 0;
  std::int64_t level = 0;
};
Merge plan_merge(const std::vector<SegmentEntry>& segments);

}  // namespace cadre::publish
