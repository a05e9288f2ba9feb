#include "base/file.h"
#include "base/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(File, ErrorsNameThePathAndTheReason) {
  try {
    read_file("/nowhere/at/all");
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/at/all: No such file or directory"));
  }
}

TEST(File, AFullDiskIsAnError) { EXPECT_THROW(AppendFile("/dev/full").append("x"), StorageError); }

TEST(File, CopiesATreeOfFilesAndDirectories) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from/deep/er");
  replace_file(directory / "from/a", std::string(3'000'000, 'x'));
  replace_file(directory / "from/deep/er/b", "");
  copy_tree(directory / "from", directory / "to");
  EXPECT_EQ(read_file(directory / "to/a").size(), 3'000'000u);
  EXPECT_TRUE(fs::exists(directory / "to/deep/er/b"));
}

TEST(File, ALinkIsNeitherCopiedNorFollowedWhenRemoving) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from");
  fs::create_directories(directory / "outside");
  replace_file(directory / "outside/precious", "data");
  fs::create_directory_symlink(directory / "outside", directory / "from/link");
  EXPECT_THROW(copy_tree(directory / "from", directory / "to"), StorageError);
  remove_tree(directory / "from");
  EXPECT_EQ(read_file(directory / "outside/precious"), "data");
}

TEST(File, RemovingWhatIsNotThereIsFine) { EXPECT_NO_THROW(remove_tree("/nowhere/at/all")); }

}  // namespace
}  // namespace cadre::base
