#include "engine/local/output_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace cadre::engine::local {
namespace {

namespace fs = std::filesystem;
using test_support::content_of;

class OutputLimitOfAFile : public ::testing::Test {
 protected:
  // Appends like a worker.
  void append(const std::string& text) { base::write_all(writer.get(), text, path); }
  // Extends the file by a hole, so that nothing is written to the disk.
  void grow_to(std::uint64_t bytes) { fs::resize_file(path, bytes); }
  std::string first_line() const {
    const std::string text = content_of(path);
    return text.substr(0, text.find_last_not_of(' ', text.find('\n') - 1) + 1);
  }

  test_support::TemporaryDirectory directory;
  fs::path path = directory / "stdout";
  base::FileDescriptor writer{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
};

TEST_F(OutputLimitOfAFile, AFileUpToTheLimitStaysAsItIs) {
  append("first\n");
  grow_to(max_output_bytes - 5);
  append("last\n");
  limit_output(path);
  EXPECT_EQ(fs::file_size(path), max_output_bytes);
}

TEST_F(OutputLimitOfAFile, BeyondItTheNewestLinesAreLeftAndALineThatSaysWhatIsNot) {
  grow_to(max_output_bytes);
  append("\nnewest\nno end of line");
  limit_output(path);
  EXPECT_EQ(first_line(),
            "[cadre: " + std::to_string(max_output_bytes + 1) + " bytes of older output were dropped here]");
  const std::string text = content_of(path);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "newest\nno end of line");
}

TEST_F(OutputLimitOfAFile, NotMoreIsKeptThanTheConstantSays) {
  grow_to(max_output_bytes);
  append(std::string(2 * kept_output_bytes, 'x'));
  limit_output(path);
  const std::string text = content_of(path);
  EXPECT_EQ(text.substr(text.find('\n') + 1), std::string(kept_output_bytes, 'x'));
}

TEST_F(OutputLimitOfAFile, WhatIsWrittenLaterFollows) {
  grow_to(max_output_bytes);
  append("\nbefore\n");
  limit_output(path);
  append("after\n");
  const std::string text = content_of(path);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "before\nafter\n");
}

TEST_F(OutputLimitOfAFile, ASecondCutCountsWhatTheFirstDropped) {
  grow_to(max_output_bytes);
  append("\nfirst\n");
  limit_output(path);
  grow_to(max_output_bytes);
  append("\nsecond\n");
  limit_output(path);
  // All bytes that were ever in the file, except the line "second"; the notice of the first cut does not count.
  const std::uint64_t hole = max_output_bytes - 80 - 6;
  EXPECT_EQ(first_line(), "[cadre: " + std::to_string(max_output_bytes + 1 + 6 + hole + 1) +
                              " bytes of older output were dropped here]");
}

TEST_F(OutputLimitOfAFile, WhatIsNotARegularFileIsLeftAlone) {
  grow_to(max_output_bytes + 1);
  fs::create_symlink(path, directory / "link");
  limit_output(directory / "link");
  limit_output(directory.path());
  limit_output(directory / "none");
  EXPECT_EQ(fs::file_size(path), max_output_bytes + 1);
}

TEST_F(OutputLimitOfAFile, TheFilesOfAWorkerThatHasEndedAreLookedAtALastTime) {
  {
    OutputLimit limit;
    limit.watch(1, directory.path());
    grow_to(max_output_bytes + 1);
    limit.worker_ended(1);
  }
  EXPECT_LT(fs::file_size(path), max_output_bytes);
}

}  // namespace
}  // namespace cadre::engine::local
