// What is published of an experiment or a training run, in one object that is written last: whoever reads it finds
// everything that it names. docs/formats.md describes it.
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
inline constexpr const char* kSegmentFolder = "store";

struct SegmentEntry {
  std::int64_t number = 0;      // ascends
  std::int64_t generation = 1;  // that wrote it
  std::int64_t level = 0;       // how many times segments became one in it
  store::Position position = {};
  std::int64_t bytes = 0;
  std::string xxh3 = {};  // 16 digits
};
// "store/00000012.segment" of the first generation, "store/00000012.generation_2.segment" of the second.
std::string segment_name(const SegmentEntry& entry);

// A controller's time with what is published: from when it takes over to when the next one does. Each has names of its
// own for what it writes, so that none can change or remove what another one has published, however late it is. They
// are numbered from 1. An entry says of which one checkpoints are.
struct Generation {
  std::int64_t first_checkpoint = 0;  // id; the entry counts up to that of the next one
  std::int64_t number = 0;
};

struct Manifest {
  std::int64_t generation = 0;               // of who wrote it; 0: nobody has
  std::string writer = {};                   // that one's token
  std::vector<Generation> generations = {};  // of all checkpoints that are listed, by ascending ids
  std::int64_t next_checkpoint = 0;          // above the ids of all that were ever published
  std::vector<SegmentEntry> segments = {};
  double time = 0;  // when it was written, seconds since 1970

  store::Position position() const { return segments.empty() ? store::Position() : segments.back().position; }
  // Returns the generation of a checkpoint that is listed.
  std::int64_t generation_of(std::int64_t checkpoint) const;
};

// Names the place of a checkpoint's files in the storage: its directory, "<directory>.generation_2" of the second
// generation.
std::string checkpoint_place(const std::string& directory, std::int64_t generation);
// A checkpoint of which only the storage has the files.
storage::Remote remote_of(const std::string& directory, Dict files, std::int64_t generation);
// A place parted again.
struct PlaceName {
  std::string_view directory;
  std::int64_t generation = 1;
};
PlaceName part_place(std::string_view place);

std::string to_text(const Manifest& manifest);
// Throws StorageError that names `source` for what is damaged or of another format.
Manifest parse_manifest(std::string_view text, const std::string& source);

// How many of the segments stay when another one is written; that takes the place of the others, and has `level`. So a
// restore reads a number of segments that grows with the logarithm of what happened.
struct Merge {
  std::size_t kept = 0;
  std::int64_t level = 0;
};
Merge plan_merge(const std::vector<SegmentEntry>& segments);

}  // namespace cadre::publish
