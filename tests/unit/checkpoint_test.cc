#include "cadre/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/json.h"
#include "cadre/object.h"
#include "storage/remote_directory.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckpointInAConfig, ComesBackAsOne) {
  const Config config{{"from", Checkpoint::from_directory("/somewhere/checkpoint_000001")}, {"lr", 0.1}};
  EXPECT_EQ(config.get<Checkpoint>("from").path(), "/somewhere/checkpoint_000001");
  const Config stored(base::parse_json(to_json(config.value()), "it"));
  EXPECT_EQ(stored.get<Checkpoint>("from").path(), "/somewhere/checkpoint_000001") << "also from a file";
}

TEST(CheckpointInAConfig, HasAnAbsolutePathForWorkersAreInOtherDirectories) {
  const Config config{{"from", Checkpoint::from_directory("pretrained")}};
  EXPECT_EQ(config.get<Checkpoint>("from").path(), fs::current_path() / "pretrained");
}

TEST(CheckpointInAConfig, AnotherKindOfReferenceOrValueIsNone) {
  const Config config{{"data", put("an object")}, {"lr", 0.1}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { config.get<Checkpoint>("data"); }),
              AllOf(HasSubstr("key \"data\""), HasSubstr("another kind of thing than a checkpoint")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { config.get<Checkpoint>("lr"); }), HasSubstr("key \"lr\""));
}

TEST(CheckpointInAConfig, SeveralComeBackAsAVector) {
  const Config config{{"ensemble", list(Checkpoint::from_directory("/a"), Checkpoint::from_directory("/b"))}};
  EXPECT_EQ(config.get<std::vector<Checkpoint>>("ensemble").at(1).path(), "/b");
}

TEST(Checkpoint, ThatCannotBeDownloadedWithoutAFolderForTemporaryFilesSaysWhichIsMissing) {
  const test_support::TemporaryDirectory folder;
  const test_support::TemporaryFilesIn here(folder);
  const std::string missing = folder / "missing";
  ::setenv("TMPDIR", missing.c_str(), 1);
  storage::write_published_to(folder.path(), {.scheme = "s3", .location = "bucket/run"});
  storage::make_remote(folder / "checkpoint", {.files = {{"model", Dict{{"size", 7}}}}});
  const Checkpoint checkpoint = Checkpoint::from_directory(folder / "checkpoint");
  EXPECT_THAT(message_of<StorageError>([&] { checkpoint.as_directory(); }),
              AllOf(HasSubstr("(TMPDIR=" + missing + "): "), HasSubstr("; set TMPDIR")));
}

}  // namespace
}  // namespace cadre
