#include "worker/checkpoint_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/directory.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointMakerTest : public ::testing::Test {
 protected:
  std::vector<std::string> directories() const { return base::list_directory(folder_.path()); }

  test_support::TemporaryDirectory folder_;
  CheckpointMaker maker_{"report", [this](std::int64_t number) { return folder_ / std::to_string(number); }};
};

TEST_F(CheckpointMakerTest, ADirectoryThatWasLeftUnderItsNameIsReplaced) {
  fs::create_directory(folder_ / "0");
  test_support::write_bytes(folder_ / "0/old", "of an interrupted try");
  const CheckpointDirectory made = maker_.make();
  EXPECT_EQ(made.path(), folder_ / "0");
  EXPECT_THAT(base::list_directory(made.path()), IsEmpty());
}

TEST_F(CheckpointMakerTest, AFullDiskLeavesNothingOfATryAndTheNextOneBeginsAnew) {
  int tries = 0;
  const CheckpointDirectory filled = maker_.fill([&](const fs::path& directory) {
    EXPECT_THAT(base::list_directory(directory), IsEmpty());
    test_support::write_bytes(directory / "model.pt", "model");
    if (++tries == 1) throw OutOfSpace("no space for the rest");
  });
  EXPECT_EQ(tries, 2);
  EXPECT_THAT(directories(), ElementsAre(filled.path().filename()));
  EXPECT_EQ(test_support::content_of(filled.path() / "model.pt"), "model");
}

TEST_F(CheckpointMakerTest, AWriterThatThrowsLeavesNothing) {
  EXPECT_THROW(maker_.fill([](const fs::path&) { throw Error("no model"); }), Error);
  EXPECT_THAT(directories(), IsEmpty());
}

TEST_F(CheckpointMakerTest, InAnotherThreadNothingIsMade) {
  std::async(std::launch::async, [&] {
    EXPECT_EQ(test_support::message_of<Error>([&] { maker_.make(); }),
              "report was called in another thread than the training function's; call it in that one");
  }).get();
  EXPECT_THAT(directories(), IsEmpty());
}

}  // namespace
}  // namespace cadre::worker
