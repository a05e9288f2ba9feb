#include "storage/file_storage.h"

#include <gtest/gtest.h>

#include <optional>

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

}  // namespace
}  // namespace cadre::storage
