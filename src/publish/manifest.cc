#include "publish/manifest.h"

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/json.h"
#include "cadre/error.h"

namespace cadre::publish {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kSegmentsPerMerge = 8;

// Row checksums have all 64 bits, with a sign.
Dict to_dict(const SegmentEntry& entry) {
  return {{"number", entry.number},
          {"level", entry.level},
          {"sequence", entry.position.sequence},
          {"row", entry.position.row},
          {"decision", entry.position.decision},
          {"bytes", entry.bytes},
          {"xxh3", entry.xxh3}};
}

SegmentEntry to_entry(const Value& value) {
  const Config entry(value.dict());
  return {.number = entry.get<std::int64_t>("number"),
          .level = entry.get<std::int64_t>("level"),
          .position = {.sequence = entry.get<std::int64_t>("sequence"),
                       .row = entry.get<std::int64_t>("row"),
                       .decision = entry.get<std::int64_t>("decision")},
          .bytes = entry.get<std::int64_t>("bytes"),
          .xxh3 = entry.get<std::string>("xxh3")};
}

std::string checksum_text(const Dict& content) {
  return fmt::format("{:016x}", base::checksum_of(base::to_json(content)));
}

}  // namespace

std::string segment_name(std::int64_t number) { return fmt::format("{}/{:08d}.segment", kSegmentFolder, number); }

std::string to_text(const Manifest& manifest) {
  List segments;
  for (const SegmentEntry& entry : manifest.segments) segments.emplace_back(to_dict(entry));
  const Dict content{{"segments", std::move(segments)}, {"time", manifest.time}};
  return base::to_json({{"format", kFormat}, {"published", content}, {"xxh3", checksum_text(content)}}) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& source) {
  try {
    const Config document(base::parse_json(text, source).dict());
    if (const auto format = document.get<std::int64_t>("format"); format != kFormat)
      throw StorageError(fmt::format("it has format {}, and this program reads format {}", format, kFormat));
    const Dict content = document.get<Dict>("published");
    if (checksum_text(content) != document.get<std::string>("xxh3"))
      throw StorageError("its contents do not have its checksum");
    const Config published(content);
    Manifest manifest{.time = published.get<double>("time")};
    for (const Value& entry : published.get<List>("segments")) manifest.segments.push_back(to_entry(entry));
    return manifest;
  } catch (const Error& error) {
    throw StorageError(fmt::format("{} is damaged: {}", source, error.what()));
  }
}

Merge plan_merge(const std::vector<SegmentEntry>& segments) {
  Merge merge{.kept = segments.size()};
  for (;;) {
    std::size_t first = merge.kept;
    while (first > 0 && segments[first - 1].level == merge.level) --first;
    if (merge.kept - first + 1 < kSegmentsPerMerge) return merge;
    merge.kept = first;
    ++merge.level;
  }
}

}  // namespace cadre::publish
