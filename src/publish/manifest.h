// What is published of an experiment or a training run, in one object that is written last: whoever reads it finds
// everything that it names. docs/formats.md describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/segment.h"

namespace cadre::publish {

inline constexpr const char* kManifestFile = "published.json";
inline constexpr const char* kSegmentFolder = "store";

struct SegmentEntry {
  std::int64_t number = 0;  // ascends
  std::int64_t level = 0;   // how many times segments became one in it
  store::Position position = {};
  std::int64_t bytes = 0;
  std::string xxh3 = {};  // 16 digits
};
// "store/00000012.segment"
std::string segment_name(std::int64_t number);

struct Manifest {
  std::vector<SegmentEntry> segments = {};
  double time = 0;  // when it was written, seconds since 1970

  store::Position position() const { return segments.empty() ? store::Position() : segments.back().position; }
};

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
