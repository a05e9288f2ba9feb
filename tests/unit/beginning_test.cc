#include "control/beginning.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cadre/error.h"
#include "store/read_store.h"
#include "store/run_directory.h"
#include "support/temporary_directory.h"

namespace cadre::control {
namespace {

namespace fs = std::filesystem;

TEST(Beginning, OneThatFailsLeavesNoDirectory) {
  const test_support::TemporaryDirectory folder;
  const fs::path directory = folder.path() / "run";
  fs::create_directory(directory);
  const auto fail_halfway = [&] {
    fs::create_directory(directory / "objects");
    std::ofstream(directory / "objects" / "half") << "an object";
    throw StorageError("the disk is full");
  };
  EXPECT_THROW(begin(directory, {.local = folder.path()}, store::experiment_tenant, fail_halfway, "f", {}),
               StorageError);
  EXPECT_FALSE(fs::exists(directory));
}

TEST(Beginning, OneThatFindsAnotherRunInItsPlaceLeavesIt) {
  const test_support::TemporaryDirectory folder;
  const fs::path directory = folder.path() / "run";
  fs::create_directory(directory);
  const publish::Place place{.local = folder.path()};
  begin(directory, place, store::experiment_tenant, [] {}, "f", {});
  EXPECT_THROW(begin(directory, place, store::experiment_tenant, [] {}, "f", {}), StorageError);
  EXPECT_TRUE(store::has_store(directory));
}

}  // namespace
}  // namespace cadre::control
