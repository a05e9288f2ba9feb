#include "publish/manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/checksum.h"
#include "base/json.h"
#include "cadre/error.h"

namespace cadre::publish {
namespace {

constexpr std::int64_t kManifestFormat = 2;
constexpr std::int64_t kManifestFormatWithoutGenerations = 1;
constexpr std::string_view kGeneration = ".generation_";
constexpr std::size_t kSegmentsPerMerge = 8;

// Row checksums use all 64 bits and are signed.
Dict to_dict(const SegmentEntry& entry) {
  return {{"number", entry.number},    {"generation", entry.generation},
          {"level", entry.level},      {"sequence", entry.position.sequence},
          {"row", entry.position.row}, {"decision", entry.position.decision},
          {"bytes", entry.bytes},      {"xxh3", entry.xxh3}};
}

SegmentEntry to_entry(const Value& value) {
  const Config entry(value.dict());
  return {.number = entry.get<std::int64_t>("number"),
          .generation = entry.contains("generation") ? entry.get<std::int64_t>("generation") : 1,
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

std::string segment_name(const SegmentEntry& entry) {
  return fmt::format("{}/{}.segment", kSegmentFolder,
                     checkpoint_place(fmt::format("{:08d}", entry.number), entry.generation));
}

std::string checkpoint_place(const std::string& directory, std::int64_t generation) {
  return generation <= 1 ? directory : fmt::format("{}{}{}", directory, kGeneration, generation);
}

storage::Remote remote_of(const std::string& directory, Dict files, std::int64_t generation) {
  return {.files = std::move(files),
          .place = generation <= 1 ? std::string() : checkpoint_place(directory, generation)};
}

PlaceName part_place(std::string_view place) {
  const std::size_t at = place.rfind(kGeneration);
  if (at == place.npos) return {.directory = place};
  const std::string_view digits = place.substr(at + kGeneration.size());
  PlaceName name{.directory = place.substr(0, at)};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.generation);
  return error == std::errc() && end == digits.data() + digits.size() ? name : PlaceName{.directory = place};
}

std::int64_t Manifest::generation_of(std::int64_t checkpoint) const {
  std::int64_t number = 1;
  for (const Generation& one : generations) {
    if (one.first_checkpoint <= checkpoint) number = one.number;
  }
  return number;
}

std::string to_text(const Manifest& manifest) {
  List segments;
  for (const SegmentEntry& entry : manifest.segments) segments.emplace_back(to_dict(entry));
  List generations;
  for (const Generation& one : manifest.generations)
    generations.emplace_back(Dict{{"first_checkpoint", one.first_checkpoint}, {"number", one.number}});
  const Dict content{{"generation", manifest.generation},     {"writer", manifest.writer},
                     {"generations", std::move(generations)}, {"next_checkpoint", manifest.next_checkpoint},
                     {"segments", std::move(segments)},       {"time", manifest.time}};
  return base::to_json({{"format", kManifestFormat}, {"published", content}, {"xxh3", checksum_text(content)}}) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& source) {
  try {
    const Config document(base::parse_json(text, source).dict());
    const auto format = document.get<std::int64_t>("format");
    if (format != kManifestFormat && format != kManifestFormatWithoutGenerations)
      throw StorageError(fmt::format("it has format {}, and this program reads formats {} and {}", format,
                                     kManifestFormatWithoutGenerations, kManifestFormat));
    const Dict content = document.get<Dict>("published");
    if (checksum_text(content) != document.get<std::string>("xxh3"))
      throw StorageError("its contents do not have its checksum");
    const Config published(content);
    Manifest manifest{.time = published.get<double>("time")};
    for (const Value& entry : published.get<List>("segments")) manifest.segments.push_back(to_entry(entry));
    if (format == kManifestFormatWithoutGenerations) {
      manifest.generation = 1;
      return manifest;
    }
    manifest.generation = published.get<std::int64_t>("generation");
    manifest.writer = published.get<std::string>("writer");
    manifest.next_checkpoint = published.get<std::int64_t>("next_checkpoint");
    for (const Value& entry : published.get<List>("generations")) {
      const Config one(entry.dict());
      manifest.generations.push_back(
          {.first_checkpoint = one.get<std::int64_t>("first_checkpoint"), .number = one.get<std::int64_t>("number")});
    }
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
