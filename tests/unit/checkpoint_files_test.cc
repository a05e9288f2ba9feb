#include "checkpoint/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace cadre::checkpoint {
namespace {

using ::cadre::test_support::content_of;
using ::cadre::test_support::TemporaryDirectory;
using ::testing::HasSubstr;

class CheckpointFiles : public ::testing::Test {
 protected:
  CheckpointFiles() {
    base::make_directory(directory_ / "deep");
    base::replace_file(directory_ / "weights", content_);
    base::replace_file(directory_ / "deep/empty", "");
  }

  Dict seal() const { return seal_files(directory_.path().parent_path(), directory_.path().filename()); }

  const std::string content_ = "0123456789abcdefghijklmnopqrstuvwxyz";
  const TemporaryDirectory directory_;
};

TEST_F(CheckpointFiles, ListsFilesWithTheirSizes) {
  EXPECT_EQ(list_files(directory_.path()), (Dict{{"deep/empty", Dict{{"size", 0}}}, {"weights", Dict{{"size", 36}}}}));
}

TEST_F(CheckpointFiles, SealedFilesHaveTheirChecksums) {
  EXPECT_EQ(seal(), (Dict{{"deep/empty", Dict{{"size", 0}, {"xxh3", "2d06800538d394c2"}}},
                          {"weights", Dict{{"size", 36}, {"xxh3", "ffb92a87c6306d55"}}}}));
  EXPECT_EQ(fault_of_files(directory_.path(), seal(), true), "");
}

TEST_F(CheckpointFiles, EveryFlippedBitAndEveryCutIsFound) {
  const Dict sealed = seal();
  for (std::size_t bit = 0; bit < content_.size() * 8; ++bit) {
    std::string flipped = content_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    base::replace_file(directory_ / "weights", flipped);
    EXPECT_THAT(fault_of_files(directory_.path(), sealed, true), HasSubstr("weights has other contents")) << bit;
    EXPECT_EQ(fault_of_files(directory_.path(), sealed, false), "") << "contents were not asked for";
  }
  for (std::size_t size = 0; size < content_.size(); ++size) {
    base::replace_file(directory_ / "weights", content_.substr(0, size));
    EXPECT_THAT(fault_of_files(directory_.path(), sealed, false), HasSubstr("instead of 36")) << size;
  }
}

TEST_F(CheckpointFiles, MissingFilesAreNamedAndOthersDoNotMatter) {
  const Dict sealed = seal();
  base::replace_file(directory_ / "more", "more");
  EXPECT_EQ(fault_of_files(directory_.path(), sealed, true), "");
  std::filesystem::remove(directory_ / "deep/empty");
  EXPECT_THAT(fault_of_files(directory_.path(), sealed, false), HasSubstr("deep/empty"));
  EXPECT_THAT(fault_of_files(directory_ / "gone", sealed, false), HasSubstr("is not there"));
}

TEST_F(CheckpointFiles, AListThatIsNoneIsAFault) {
  EXPECT_NE(fault_of_files(directory_.path(), Dict{{"weights", 3}}, true), "");
  EXPECT_NE(fault_of_files(directory_.path(), Dict{{"weights", Dict{}}}, true), "");
}

TEST_F(CheckpointFiles, LinksAreRefusedAndNotFollowed) {
  const Dict sealed = seal();
  std::filesystem::rename(directory_ / "weights", directory_ / "elsewhere");
  std::filesystem::create_symlink(directory_ / "elsewhere", directory_ / "weights");
  EXPECT_THROW(list_files(directory_.path()), StorageError);
  EXPECT_NE(fault_of_files(directory_.path(), sealed, true), "");
}

TEST_F(CheckpointFiles, WhatIsNoFileIsAFaultAndIsNotRead) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  for (const char* name : {"pipe", "deep"}) {
    struct stat status{};
    ASSERT_EQ(::stat((directory_.path() / name).c_str(), &status), 0);
    const Dict listed{{name, Dict{{"size", std::int64_t{status.st_size}}, {"xxh3", "2d06800538d394c2"}}}};
    EXPECT_THAT(fault_of_files(directory_.path(), listed, true), HasSubstr("no regular file"));
  }
  for (const char* elsewhere : {"/dev/zero", "../../dev/zero"})
    EXPECT_THAT(fault_of_files(directory_.path(), {{elsewhere, Dict{{"size", 0}}}}, true), HasSubstr("none inside"));
}

TEST_F(CheckpointFiles, ACheckpointIsComparedWithWhatTheStoreAndItsMetadataSay) {
  const std::filesystem::path experiment = directory_.path().parent_path();
  write_metadata(directory_.path(), {"a trial with another name", 123, 1});  // as in a copy of a checkpoint
  write_metadata(directory_.path(), {"00003", 7, 1'700'000'000});
  store::CheckpointRow row{.directory = directory_.path().filename(), .boot = "this boot"};
  EXPECT_EQ(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::contents), "");
  EXPECT_THAT(fault_of_checkpoint(experiment, row, "another boot", CheckDepth::contents),
              HasSubstr("not yet on the disk"));
  row.synced = true;
  row.manifest = to_json(Value(seal()));
  EXPECT_EQ(fault_of_checkpoint(experiment, row, "another boot", CheckDepth::contents), "");
  base::replace_file(directory_ / "weights", std::string(content_.size(), 'x'));
  EXPECT_THAT(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::contents), HasSubstr("other contents"));
  EXPECT_EQ(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::sizes), "");
  row.synced = false;
  base::replace_file(directory_ / "weights", "short");
  EXPECT_THAT(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::sizes), HasSubstr("instead of 36"));
  std::filesystem::remove(directory_ / ".metadata.json");
  EXPECT_EQ(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::directory), "");
  EXPECT_THAT(fault_of_checkpoint(experiment, row, "this boot", CheckDepth::sizes), HasSubstr(".metadata.json"));
}

TEST_F(CheckpointFiles, NamesAreToldApart) {
  EXPECT_EQ(checkpoint_name(0), "checkpoint_000000");
  EXPECT_EQ(checkpoint_name(12'345'678), "checkpoint_12345678");
  EXPECT_EQ(reporting_prefix(3), ".reporting_3_");
  EXPECT_TRUE(is_reporting_name(".reporting_3_0"));
  for (const char* name : {".reporting_3/..", "checkpoint_000000", "reporting_3_0", ""})
    EXPECT_FALSE(is_reporting_name(name)) << name;
  EXPECT_TRUE(is_name_of_checkpoint("checkpoint_000000"));
  EXPECT_TRUE(is_name_of_checkpoint(".reporting_3_0"));
  EXPECT_TRUE(is_name_of_checkpoint("checkpoint_000001_1"));
  for (const char* name : {"result.json", "checkpoint_", "checkpoint_best", "checkpoint_3.5"})
    EXPECT_FALSE(is_name_of_checkpoint(name)) << name;
}

TEST(SetAside, FreesTheNameAtOnceAndKeepsTheFilesUntilTheyAreRemoved) {
  const TemporaryDirectory directory;
  const std::filesystem::path trial = directory / "trial";
  const auto make = [&] {
    base::make_directories(trial / "checkpoint_000003");
    base::replace_file(trial / "checkpoint_000003/weights", "12345678");
  };
  const auto aside = [&](const std::string& name) { return set_aside(directory.path(), {"trial/" + name, "a test"}); };
  make();
  EXPECT_EQ(aside("checkpoint_000003"), "trial/.reporting_removed_checkpoint_000003");
  EXPECT_EQ(base::list_directory(trial), std::vector<std::string>{".reporting_removed_checkpoint_000003"});
  EXPECT_TRUE(std::filesystem::exists(trial / ".reporting_removed_checkpoint_000003/weights"));
  EXPECT_TRUE(is_name_of_checkpoint(".reporting_removed_checkpoint_000003")) << "no later controller would find it";
  EXPECT_EQ(aside(".reporting_removed_checkpoint_000003"), "trial/.reporting_removed_checkpoint_000003");
  make();  // again, before the other one's files are removed
  EXPECT_EQ(aside("checkpoint_000003"), "");
  EXPECT_EQ(base::list_directory(trial), std::vector<std::string>{".reporting_removed_checkpoint_000003"});
  EXPECT_EQ(aside("checkpoint_000004"), "");
}

}  // namespace
}  // namespace cadre::checkpoint
