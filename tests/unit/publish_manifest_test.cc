#include "publish/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/checksum.h"
#include "cadre/error.h"

namespace cadre::publish {
namespace {

Manifest some_manifest() {
  Manifest manifest{.generation = 3, .writer = "0011", .next_checkpoint = 12, .time = 1.5};
  manifest.generations = {{.first_checkpoint = 0, .number = 1}, {.first_checkpoint = 7, .number = 3}};
  manifest.segments.push_back({.number = 8,
                               .generation = 2,
                               .level = 1,
                               .position = {164, std::numeric_limits<std::int64_t>::min(), 26},
                               .bytes = 100,
                               .xxh3 = "00000000000000ff"});
  return manifest;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const Manifest manifest = some_manifest();
  const Manifest read = parse_manifest(to_text(manifest), "x");
  EXPECT_EQ(to_text(read), to_text(manifest));
  EXPECT_EQ(read.position(), manifest.position());
  EXPECT_EQ(Manifest().position(), store::Position());
}

TEST(Manifest, ASegmentsNameHasItsGeneration) {
  for (const std::int64_t generation : {1, 2, 30})
    EXPECT_EQ(generation_of_segment(segment_name({.number = 12, .generation = generation})), generation);
  for (const char* const name : {"store/note.txt", "store.segment", "result.json"})
    EXPECT_EQ(generation_of_segment(name), std::nullopt) << name;
}

TEST(Manifest, OfAnotherFormatIsRefused) {
  for (const int format : {2, 4}) {
    const std::string text =
        fmt::format(R"({{"format": {}, "published": {{}}, "xxh3": "{:016x}"}})", format, base::checksum_of("{}"));
    EXPECT_THAT([&] { parse_manifest(text, "x"); },
                testing::ThrowsMessage<StorageError>(testing::HasSubstr(fmt::format("it has format {}, ", format))));
  }
}

TEST(Manifest, KnowsWhereEachGenerationsFilesAre) {
  const Manifest manifest = some_manifest();
  EXPECT_EQ(segment_name(manifest.segments[0]), "store/00000008.generation_2.segment");
  EXPECT_EQ(manifest.generation_of(6), 1);
  EXPECT_EQ(manifest.generation_of(7), 3);
  EXPECT_EQ(Manifest().generation_of(7), 1);
  EXPECT_EQ(checkpoint_place("trial/checkpoint_000004", 1), "trial/checkpoint_000004");
  EXPECT_EQ(checkpoint_place("trial/checkpoint_000004", 12), "trial/checkpoint_000004.generation_12");
  for (const std::string place : {"a/b", "a/b.generation_2", "a/b.generation_123"}) {
    const PlaceName name = part_place(place);
    EXPECT_EQ(checkpoint_place(std::string(name.directory), name.generation), place);
  }
  for (const std::string directory : {"a.generation_", "a.generation_2x", "a.generation_99999999999999999999"})
    EXPECT_EQ(part_place(directory).directory, directory);
}

TEST(Manifest, WithAFlippedBitOrAPartOnlyIsRefused) {
  const std::string text = to_text(some_manifest());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {  // the last character is a line feed
    EXPECT_THROW(parse_manifest(text.substr(0, i), "x"), StorageError) << i;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    try {
      EXPECT_EQ(to_text(parse_manifest(flipped, "x")), text) << i;  // only whitespace between tokens has changed
    } catch (const StorageError&) {
    }
  }
}

TEST(Manifest, WithANumberThatHasNoNextOneIsRefused) {
  for (const std::int64_t number : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    std::vector<Manifest> manifests(4, some_manifest());
    manifests[0].generation = number;
    manifests[1].next_checkpoint = number;
    manifests[2].generations[1].number = number;
    manifests[3].segments[0].number = number;
    for (const Manifest& manifest : manifests) {
      EXPECT_THAT([&] { parse_manifest(to_text(manifest), "x"); },
                  testing::ThrowsMessage<StorageError>(testing::HasSubstr(fmt::format("the number {}", number))));
    }
  }
}

// A restore reads few segments, and no row is rewritten often.
TEST(Manifest, SegmentsBecomeFewerAsTheyGrow) {
  std::vector<SegmentEntry> segments;
  std::int64_t written = 0;
  constexpr std::int64_t count = 5000;
  for (std::int64_t i = 1; i <= count; ++i) {
    const Merge merge = plan_merge(segments);
    std::int64_t rows = 1;
    for (std::size_t k = merge.kept; k < segments.size(); ++k) rows += segments[k].bytes;
    segments.resize(merge.kept);
    segments.push_back({.number = i, .level = merge.level, .bytes = rows});
    written += rows;
    ASSERT_LE(segments.size(), 7u * 5u);
  }
  std::int64_t rows = 0;
  for (const SegmentEntry& segment : segments) rows += segment.bytes;
  EXPECT_EQ(rows, count);
  EXPECT_LE(written, count * 5);
}

}  // namespace
}  // namespace cadre::publish
