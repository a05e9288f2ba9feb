#include "engine/local/last_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/native_stack.h"
#include "engine/local/function_symbols.h"
#include "support/temporary_directory.h"

namespace cadre::engine::local {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kTorchError =
    "c10::Error: open file failed because of errno 2\n"
    "Exception raised from RAIIFile at ../caffe2/serialize/file_adapter.cc:21 (most recent call first):\n"
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x80 (0x7f12 in /lib/libc10.so)\n"
    "frame #1: <unknown function> + 0x5a (0x7f13 in /lib/libtorch_cpu.so)\n"
    "\n";

TEST(NativeStacks, AreCutFromMessagesAndNothingElseIs) {
  EXPECT_EQ(base::without_native_stacks(kTorchError), "c10::Error: open file failed because of errno 2");
  EXPECT_EQ(base::without_native_stacks("rank 0: " + kTorchError + "rank 1: " + kTorchError + "\nmore\n\n"),
            "rank 0: c10::Error: open file failed because of errno 2\n"
            "rank 1: c10::Error: open file failed because of errno 2\nmore\n\n");
  EXPECT_EQ(base::without_native_stacks("a\nException raised from f at g.cc:1 (most recent call first):\n"
                                        "C++ CapturedTraceback:\n#4 f() from g.cc:0\n#5 main\n  because of b"),
            "a\n  because of b");
  for (const std::string text : {"", "\n", "a", "a\n\n", "frame #0: f\n#1 g\n", "Exception raised from here\nb\n"})
    EXPECT_EQ(base::without_native_stacks(text), text);
}

TEST(LastOutput, IsTheLastLinesThatAreNotEmpty) {
  std::string text;
  for (int i = 1; i <= 12; ++i) text += "line " + std::to_string(i) + "\r\n\n";
  EXPECT_THAT(describe_output(text), AllOf(StartsWith("  line 3\n  line 4\n"), EndsWith("\n  line 12")));
  EXPECT_EQ(describe_output(" \n\n"), "");
  EXPECT_EQ(describe_output(kTorchError + "bye"), "  c10::Error: open file failed because of errno 2\n  bye");
  EXPECT_THAT(describe_output(std::string(100'000, 'x')), AllOf(StartsWith("  ...xxx"), SizeIs(kMostOutputBytes + 5)));
}

TEST(LastOutput, HasABackTraceWithDemangledNamesBelowIt) {
  EXPECT_EQ(
      describe_output("bye\ncadre: back trace after SIGSEGV at address 0x8:\n"
                      "/nowhere/libmodel.so(_ZN5model4stepEi+0x1f) [0x7f0000000010]\n"
                      "/nowhere/train(+0x1234) [0x550000001234]\n"
                      "nonsense (\n"
                      "/nowhere/train(_ZN5cadre6worker10run_workerENS_6engine5local11WorkerPartsE+0x8) [0x55000000]\n"
                      "/nowhere/train(main+0x8) [0x55000000]\n"),
      "  bye\n  back trace after SIGSEGV at address 0x8:\n  #0 model::step(int)+0x1f (libmodel.so)\n"
      "  #1 train+0x1234\n  #2 nonsense (");
  EXPECT_EQ(describe_output("cadre: back trace after "), "  back trace after ");
}

TEST(LastOutput, OfAFileThatWasCutIsAllOfIt) {
  const test_support::TemporaryDirectory directory;
  std::ofstream(directory / "stderr") << "old\nnew\n";
  EXPECT_EQ(last_output(directory / "stderr", 4), "  new");
  EXPECT_EQ(last_output(directory / "stderr", 100), "  old\n  new");
  EXPECT_EQ(last_output(directory / "none", 0), "");
  EXPECT_EQ(last_output(directory.path(), 0), "");
}

TEST(FunctionSymbols, OfWhatIsNoElfFileAreNone) {
  const test_support::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "file";
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string header(64, '\0');
  self.read(header.data(), 64);
  for (const std::string& content : {std::string(), std::string("text"), header, header.substr(0, 40),
                                     std::string("\x7f"
                                                 "ELF\2\1\1") +
                                         std::string(200, '\xff')}) {
    std::ofstream(file, std::ios::binary) << content;
    EXPECT_FALSE(FunctionSymbols(file).find(0x1000));
  }
  EXPECT_FALSE(FunctionSymbols("/proc/self/exe").find(0));
  EXPECT_FALSE(FunctionSymbols("/nowhere").find(0));
}

}  // namespace
}  // namespace cadre::engine::local
