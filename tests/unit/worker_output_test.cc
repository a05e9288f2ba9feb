#include "view/worker_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace cadre::view {
namespace {

using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class OfTwoRanks : public ::testing::Test {
 protected:
  OfTwoRanks() {
    for (const auto& directory : directories_) std::filesystem::create_directory(directory);
  }
  void print(std::size_t rank, const std::string& text, const char* stream = "stdout") const {
    std::ofstream(directories_.at(rank) / stream, std::ios::app) << text;
  }

  void begin() {
    output_.watch("rank 0", directories_[0]);
    output_.watch("rank 1", directories_[1]);
  }

  TemporaryDirectory storage_;
  std::vector<std::filesystem::path> directories_{storage_ / "rank_0", storage_ / "rank_1"};
  WorkerOutput output_;
};

TEST_F(OfTwoRanks, EveryLineComesOnceWithItsRankAndInItsStream) {
  begin();
  EXPECT_EQ(output_.take().out, "");
  print(0, "one\ntwo\n");
  print(1, "\xff\n\n");
  print(1, "warning\n", "stderr");
  const WorkerOutput::Text text = output_.take();
  EXPECT_EQ(text.out, "(rank 0) one\n(rank 0) two\n(rank 1) \xff\n(rank 1) \n");
  EXPECT_EQ(text.err, "(rank 1) warning\n");
  EXPECT_EQ(output_.take().out, "");
}

TEST_F(OfTwoRanks, ALineIsShownWhenItIsWholeOrTheLast) {
  begin();
  print(0, "hal");
  EXPECT_EQ(output_.take().out, "");
  print(0, "ves\nrest");
  EXPECT_EQ(output_.take().out, "(rank 0) halves\n");
  EXPECT_EQ(output_.end_all().out, "(rank 0) rest\n");
  EXPECT_EQ(output_.end_all().out, "");
}

TEST_F(OfTwoRanks, WhatAnEarlierGroupHasPrintedIsNotShownAgain) {
  print(0, "old\n");
  begin();
  print(0, "new\n");
  EXPECT_EQ(output_.take().out, "(rank 0) new\n");
}

TEST_F(OfTwoRanks, OfAFloodTheNewestLinesAreShownAndTheBytesBeforeThemAreCounted) {
  begin();
  print(0, "begun");
  output_.take();
  const std::string line(99, 'x');
  for (int i = 0; i < 10'000; ++i) print(0, line + "\n");
  print(0, "the last\n");
  const std::string text = output_.take().out;
  const std::size_t shown = (text.size() - text.find(" x")) / (line.size() + 10);
  EXPECT_THAT(text, AllOf(StartsWith("(rank 0) begun\n(rank 0) [cadre: "),
                          HasSubstr(std::to_string(100 * (10'000 - shown)) + " bytes are only in " +
                                    (directories_[0] / "stdout").string() + "]\n(rank 0) xxx"),
                          EndsWith("(rank 0) the last\n")));
  EXPECT_LT(text.size(), 2 * WorkerOutput::kMostBytes);
}

TEST_F(OfTwoRanks, ALineWithoutEndIsShownInParts) {
  begin();
  const std::string half(WorkerOutput::kMostBytes / 2 + 1, 'x');
  print(0, half);
  EXPECT_EQ(output_.take().out, "");
  print(0, half);
  EXPECT_EQ(output_.take().out, "(rank 0) " + half + half + "\n");
}

TEST_F(OfTwoRanks, AFileThatWasCutGoesOnAtItsEnd) {
  print(0, std::string(1000, 'x') + "\n");
  begin();
  std::filesystem::resize_file(directories_[0] / "stdout", 10);  // as engine/local/output_limit.h does
  EXPECT_EQ(output_.take().out, "");
  print(0, "new\n");
  EXPECT_EQ(output_.take().out, "(rank 0) new\n");
}

}  // namespace
}  // namespace cadre::view
