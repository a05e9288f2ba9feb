#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>

#include "base/directory.h"
#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

namespace fs = std::filesystem;
using cadre::test_support::TemporaryDirectory;
using ::testing::ElementsAre;

TEST(OutputFile, IsReplacedWhenItsSuccessorIsWhole) {
  const TemporaryDirectory directory;
  write_file(directory / "table", "former");
  {
    OutputFile output(directory / "table");
    write_file(output.path(), "a part");
    EXPECT_EQ(read_file(directory / "table"), "former");
  }
  EXPECT_EQ(read_file(directory / "table"), "former");
  EXPECT_THAT(list_directory(directory.path()), ElementsAre("table"));
  write_output_file(directory / "table", "whole");
  EXPECT_EQ(read_file(directory / "table"), "whole");
  EXPECT_THAT(list_directory(directory.path()), ElementsAre("table"));
}

TEST(OutputFile, ALinkIsWrittenThroughAndStays) {
  const TemporaryDirectory directory;
  write_file(directory / "table", "a longer former one");
  fs::create_symlink(directory / "table", directory / "link");
  write_output_file(directory / "link", "whole");
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "table"), "whole");
}

TEST(OutputFile, FilesAndLinksBesideItStay) {
  const TemporaryDirectory directory;
  write_file(directory / "private", "mine");
  fs::create_symlink(directory / "private", directory / "table.tmp");
  write_output_file(directory / "table", "whole");
  EXPECT_EQ(read_file(directory / "private"), "mine");
  EXPECT_TRUE(fs::is_symlink(directory / "table.tmp"));
  EXPECT_EQ(read_file(directory / "table"), "whole");
}

TEST(OutputFile, ASuccessorHasItsPermissions) {
  const TemporaryDirectory directory;
  write_file(directory / "table", "former");
  constexpr fs::perms own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(directory / "table", own);
  write_output_file(directory / "table", "whole");
  EXPECT_EQ(fs::status(directory / "table").permissions(), own);
}

TEST(OutputFile, APipeIsWrittenToAndStays) {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR), 0);
  std::string read;
  std::thread reader([&] { read = read_file(pipe); });
  write_output_file(pipe, "whole");
  EXPECT_TRUE(fs::is_fifo(pipe));
  reader.join();
  EXPECT_EQ(read, "whole");
}

TEST(OutputFile, AnErrorNamesThePath) {
  EXPECT_THROW(write_output_file("/nowhere/at/all", "whole"), StorageError);
  const TemporaryDirectory directory;
  EXPECT_THROW(write_output_file(directory.path(), "whole"), StorageError);
}

}  // namespace
}  // namespace cadre::base
