#include "publish/manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/checksum.h"
#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"

namespace cadre::publish {
namespace {

constexpr std::int64_t kManifestFormat = 3;
constexpr std::string_view kGeneration = ".generation_";
constexpr std::string_view kSegmentSuffix = ".segment";
constexpr std::size_t kSegmentsPerMerge = 8;

struct Document {
  std::int64_t format = kManifestFormat;
  Value published = {};
  std::string xxh3 = {};  // of `published` as JSON
};

std::string checksum_text(const Value& content) {
  return fmt::format("{:016x}", base::checksum_of(base::to_json(content.dict())));
}

// Throws if a number is none that counting reaches: the next one may not exist.
void check_numbers(const Manifest& manifest) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  std::vector<std::int64_t> numbers{manifest.generation, manifest.next_checkpoint};
  for (const Generation& one : manifest.generations) numbers.insert(numbers.end(), {one.first_checkpoint, one.number});
  for (const SegmentEntry& one : manifest.segments)
    numbers.insert(numbers.end(), {one.number, one.generation, one.level, one.bytes});
  for (const std::int64_t number : numbers) {
    if (number < 0 || number > kMost) throw StorageError(fmt::format("it has the number {}", number));
  }
}

}  // namespace

std::string segment_name(const SegmentEntry& entry) {
  return fmt::format("{}/{}{}", kSegmentFolder, checkpoint_place(fmt::format("{:08d}", entry.number), entry.generation),
                     kSegmentSuffix);
}

std::optional<std::int64_t> generation_of_segment(std::string_view name) {
  const bool is_in_folder = name.starts_with(kSegmentFolder) && name.substr(kSegmentFolder.size()).starts_with('/');
  if (!is_in_folder || !name.ends_with(kSegmentSuffix)) return std::nullopt;
  return part_place(name.substr(0, name.size() - kSegmentSuffix.size())).generation;
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
  const Value content = cadre::to_stored(manifest);
  const Document document{.published = content, .xxh3 = checksum_text(content)};
  return base::to_json(cadre::to_stored(document).dict()) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& source) {
  try {
    const auto document = cadre::document_from_value<Document>(base::parse_json(text, source));
    if (checksum_text(document.published) != document.xxh3) throw StorageError("its contents do not have its checksum");
    auto manifest = cadre::complete_from_value<Manifest>(document.published);
    check_numbers(manifest);
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
