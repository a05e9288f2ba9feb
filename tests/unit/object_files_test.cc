#include "store/object_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/directory.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

using test_support::content_of;
using test_support::message_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string id_of(const std::string& text) {
  base::ContentHash hash;
  hash.add(text);
  return object_id(hash.hex(), text.size());
}

TEST(ObjectFiles, AnIdSaysItsSizeAndAnythingElseIsNone) {
  const std::string hash = "00112233445566778899aabbccddeeff";
  EXPECT_EQ(size_of_object(hash + "-0"), 0u);
  EXPECT_EQ(size_of_object(hash + "-18446744073709551615"), 18446744073709551615u);
  for (const std::string& id :
       {std::string(), hash, hash + "-", hash + "-01", hash + "--1", hash + "-1 ", hash + "- 1", hash + "-1/..",
        hash + "-18446744073709551616", "../" + hash + "-1", hash.substr(1) + "-1", hash.substr(3) + "/..-1",
        "A" + hash.substr(1) + "-1", hash + "0-1", hash + "-1" + std::string(1, '\0')})
    EXPECT_EQ(size_of_object(id), std::nullopt) << id;
}

// The expected hashes are the output of `xxhsum -H2`, so that other programs can check a file.
TEST(ObjectFiles, TheHashIsXxh3With128Bits) {
  EXPECT_EQ(id_of(""), "99aa06d3014798d86001c324468d497f-0");
  EXPECT_EQ(id_of("a"), "a96faf705af16834e6c632b61e964e1f-1");
}

TEST(ObjectFiles, WhatWasWrittenIsMapped) {
  const TemporaryDirectory directory;
  for (const std::string& text : {std::string("some contents"), std::string()}) {
    write_object(directory.path(), id_of(text), bytes_of(text));
    const auto map = map_object(object_path(directory.path(), id_of(text)), id_of(text));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size()), text);
    EXPECT_EQ(fault_of_object(object_path(directory.path(), id_of(text)), id_of(text), true), "");
  }
}

TEST(ObjectFiles, AFileHasItsNameWhenItIsWholeAndHalfOnesAreReplaced) {
  const TemporaryDirectory directory;
  const std::string id = id_of("contents");
  fs::create_directory(directory / "objects");
  write_bytes(directory / "elsewhere", "cont");
  fs::create_hard_link(directory / "elsewhere", directory / ("objects/" + id + ".tmp"));
  write_object(directory.path(), id, bytes_of("contents"));
  EXPECT_EQ(content_of(directory / "elsewhere"), "cont") << "it was written to";
  EXPECT_THAT(base::list_directory(directory / "objects"), ElementsAre(id));
  EXPECT_EQ(content_of(object_path(directory.path(), id)), "contents");
}

TEST(ObjectFiles, ContentsThatAreNotWhatTheIdNamesAreNotWritten) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      message_of<StorageError>([&] { write_object(directory.path(), id_of("contents"), bytes_of("other stuff")); }),
      HasSubstr(id_of("contents")));
  EXPECT_FALSE(fs::exists(directory / "objects"));
}

TEST(ObjectFiles, AFileThatIsGoneOrHasAnotherSizeOrOtherContentsIsNamed) {
  const TemporaryDirectory directory;
  const std::string id = id_of("contents");
  const fs::path path = object_path(directory.path(), id);
  EXPECT_THAT(message_of<NotFound>([&] { map_object(path, id); }), AllOf(HasSubstr(id), HasSubstr(path.string())));
  EXPECT_THAT(fault_of_object(path, id, false), HasSubstr("gone"));

  fs::create_directory(directory / "objects");
  write_bytes(path, "cont");
  EXPECT_THAT(message_of<StorageError>([&] { map_object(path, id); }),
              AllOf(HasSubstr(id), HasSubstr(path.string()), HasSubstr("4 bytes"), HasSubstr("8")));
  EXPECT_THAT(fault_of_object(path, id, false), HasSubstr("4 bytes"));

  write_bytes(path, "contemps");
  EXPECT_THAT(fault_of_object(path, id, false), IsEmpty());
  EXPECT_THAT(fault_of_object(path, id, true), HasSubstr("other contents"));
}

TEST(ObjectFiles, ALinkOrADirectoryInItsPlaceIsRefused) {
  const TemporaryDirectory directory;
  const std::string id = id_of("contents");
  const fs::path path = object_path(directory.path(), id);
  fs::create_directory(directory / "objects");
  write_bytes(directory / "elsewhere", "contents");
  fs::create_symlink(directory / "elsewhere", path);
  EXPECT_THROW(map_object(path, id), StorageError);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THROW(map_object(path, id), StorageError);
  EXPECT_NE(fault_of_object(path, id, false), "");
}

}  // namespace
}  // namespace cadre::store
