#include "storage/file_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/directory.h"
#include "support/temporary_directory.h"
#include "support/without_calls.h"

namespace cadre::storage {
namespace {

// Lustre has none unless it is mounted with the option flock. An endless loop was here.
TEST(FileStorage, WritesOnAConditionAlsoWhereThereAreNoLocks) {
  const test_support::TemporaryDirectory directory;
  FileStorage storage(directory / "root");
  const bool is_without = test_support::without_locks([&] {
    EXPECT_FALSE(storage.has_conditional_writes());
    const auto first = storage.write_if("file", "1", std::nullopt);
    ASSERT_TRUE(first);
    EXPECT_EQ(storage.write_if("file", "another", std::nullopt), std::nullopt);
    EXPECT_TRUE(storage.write_if("file", "2", first));
    EXPECT_EQ(storage.read("file"), "2");
  });
  if (!is_without) GTEST_SKIP() << "system calls cannot be refused here";
}

TEST(FileStorage, RemovesWhatKilledWritersHaveLeftAndNothingElse) {
  namespace fs = std::filesystem;
  const test_support::TemporaryDirectory directory;
  const std::string left = ".cadre_unfinished_00000000_1_1";
  const std::string being_written = ".cadre_unfinished_00000000_1_2";
  const auto write_old = [](const fs::path& file) {
    test_support::write_bytes(file, "half of it");
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  };
  fs::create_directories(directory / "root/objects");
  fs::create_directories(directory / "elsewhere");
  fs::create_directory_symlink(directory / "elsewhere", directory / "root/link");
  for (const char* folder : {"root", "root/objects", "elsewhere"}) write_old(directory / folder / left);
  write_old(directory / "root/.cadre_unfinished_lock");
  write_old(directory / "root/objects/file");
  test_support::write_bytes(directory / "root/objects" / being_written, "half of it");
  FileStorage(directory / "root").remove_unfinished();
  EXPECT_THAT(base::list_directory(directory / "root"),
              testing::ElementsAre(".cadre_unfinished_lock", "link", "objects"));
  EXPECT_THAT(base::list_directory(directory / "root/objects"), testing::ElementsAre(being_written, "file"));
  EXPECT_THAT(base::list_directory(directory / "elsewhere"), testing::ElementsAre(left));
  FileStorage(directory / "nothing").remove_unfinished();
  EXPECT_FALSE(fs::exists(directory / "nothing"));
}

}  // namespace
}  // namespace cadre::storage
