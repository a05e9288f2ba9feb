#include "base/directory.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

using cadre::test_support::TemporaryDirectory;

namespace fs = std::filesystem;

TEST(Directory, CopiesATreeOfFilesAndDirectories) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from/deep/er");
  replace_file(directory / "from/a", std::string(3'000'000, 'x'));
  replace_file(directory / "from/deep/er/b", "");
  copy_tree(directory / "from", directory / "to");
  EXPECT_EQ(read_file(directory / "to/a").size(), 3'000'000u);
  EXPECT_TRUE(fs::exists(directory / "to/deep/er/b"));
}

TEST(Directory, LinksATreeThatTakesNoSpaceAndWhoseNamesAreItsOwn) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from/deep");
  replace_file(directory / "from/deep/a", "data");
  link_tree(directory / "from", directory / "to");
  EXPECT_TRUE(fs::equivalent(directory / "from/deep/a", directory / "to/deep/a"));
  remove_tree(directory / "from");
  EXPECT_EQ(read_file(directory / "to/deep/a"), "data");
}

TEST(Directory, ALinkIsNeitherCopiedNorFollowedWhenRemoving) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from");
  fs::create_directories(directory / "outside");
  replace_file(directory / "outside/precious", "data");
  fs::create_directory_symlink(directory / "outside", directory / "from/link");
  EXPECT_THROW(copy_tree(directory / "from", directory / "to"), StorageError);
  remove_tree(directory / "from");
  EXPECT_EQ(read_file(directory / "outside/precious"), "data");
}

TEST(Directory, MakesAllThatIsMissingAboveOne) {
  const TemporaryDirectory directory;
  make_directories_durably(directory / "a/b/c");
  make_directories_durably(directory / "a/b/c");  // exists already
  EXPECT_TRUE(fs::is_directory(directory / "a/b/c"));
  replace_file_durably(directory / "a/file", "data");
  EXPECT_EQ(read_file(directory / "a/file"), "data");
  EXPECT_FALSE(fs::exists(directory / "a/file.tmp"));
  EXPECT_THROW(make_directories_durably(directory / "a/file/b"), StorageError);
  EXPECT_NO_THROW(sync_tree(directory.path()));
  EXPECT_THROW(sync_tree(directory / "nowhere"), StorageError);
}

TEST(Directory, RemovingWhatIsNotThereIsFine) { EXPECT_NO_THROW(remove_tree("/nowhere/at/all")); }

TEST(Directory, WhatAPathLeadsToIsToldWithItsSize) {
  const TemporaryDirectory directory;
  replace_file(directory / "a", "12345");
  fs::create_symlink(directory / "a", directory / "link");
  EXPECT_EQ(info_of(directory / "a").kind, FileInfo::Kind::file);
  EXPECT_EQ(info_of(directory / "a").size, 5);
  EXPECT_EQ(info_of(directory.path()).kind, FileInfo::Kind::directory);
  EXPECT_EQ(info_of(directory / "link").kind, FileInfo::Kind::other);
  EXPECT_THROW(info_of(directory / "b"), StorageError);
}

}  // namespace
}  // namespace cadre::base
