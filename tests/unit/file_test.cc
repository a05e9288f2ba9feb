#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/directory.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

using cadre::test_support::TemporaryDirectory;

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(File, ReplacingLeavesNoTemporaryFileBehind) {
  const TemporaryDirectory directory;
  replace_file(directory / "a", "one");
  replace_file(directory / "a", "two");
  EXPECT_EQ(read_file(directory / "a"), "two");
  EXPECT_THAT(list_directory(directory.path()), ElementsAre("a"));
}

TEST(File, APrivateFileIsOneThatNobodyElseHasOpened) {
  const TemporaryDirectory directory;
  write_file(directory / "a.tmp", "left by a process that was killed");
  const auto opened = ReadableFile::open(directory / "a.tmp", ReadableFile::Links::refuse);
  ASSERT_TRUE(opened);
  replace_private_file(directory / "a", "secret");
  EXPECT_EQ(read_file(directory / "a"), "secret");
  EXPECT_EQ(fs::status(directory / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(opened->size(), std::string_view("left by a process that was killed").size());
}

TEST(File, ErrorsNameThePathAndTheReason) {
  try {
    read_file("/nowhere/at/all");
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/at/all: No such file or directory"));
  }
}

// The descriptor is gone after replace(), as after a write that failed and could not be undone.
TEST(File, WhatAFailedWriteHasLeftIsCutOffByTheNext) {
  const TemporaryDirectory directory;
  AppendFile file(directory / "lines");
  file.replace("one\n");
  test_support::write_bytes(directory / "lines", "one\ntw");
  file.append("two\n");
  EXPECT_EQ(test_support::content_of(directory / "lines"), "one\ntwo\n");
  EXPECT_EQ(file.stamp().size, 8);
}

TEST(File, AFullDiskIsAnError) { EXPECT_THROW(AppendFile("/dev/full").append("x"), StorageError); }

TEST(ReadableFile, IsReadAtAnyPlaceUpToItsEnd) {
  const TemporaryDirectory directory;
  write_file(directory / "a", "0123456789");
  const std::optional<ReadableFile> file = ReadableFile::open(directory / "a", ReadableFile::Links::refuse);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  std::string part(4, ' ');
  EXPECT_EQ(file->read(3, std::as_writable_bytes(std::span(part))), 4u);
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file->read(8, std::as_writable_bytes(std::span(part))), 2u);
  EXPECT_EQ(part.substr(0, 2), "89");
  EXPECT_EQ(file->read(100, std::as_writable_bytes(std::span(part))), 0u);
}

TEST(ReadableFile, IsARegularFileOrThereIsNone) {
  const TemporaryDirectory directory;
  using enum ReadableFile::Links;
  write_file(directory / "a", "x");
  fs::create_symlink(directory / "a", directory / "link");
  EXPECT_FALSE(ReadableFile::open(directory / "b", follow));
  EXPECT_TRUE(ReadableFile::open(directory / "link", follow));
  EXPECT_THROW(ReadableFile::open(directory / "link", refuse), StorageError);
  EXPECT_THROW(ReadableFile::open(directory.path(), follow), StorageError);
}

}  // namespace
}  // namespace cadre::base
