#include "base/reason_line.h"

#include <gtest/gtest.h>

namespace cadre::base {
namespace {

TEST(ReasonLine, IsTheFirstLine) {
  EXPECT_EQ(reason_line(""), "");
  EXPECT_EQ(reason_line("no memory"), "no memory");
  EXPECT_EQ(reason_line("no memory\nThe last lines of its stderr:\n  bye"), "no memory");
}

TEST(ReasonLine, OfATracebackIsTheExceptionAndNotTheTitle) {
  EXPECT_EQ(reason_line("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n    ^^^\n"
                        "ValueError: no such layer\nthere are two\n"),
            "ValueError: no such layer");
  EXPECT_EQ(reason_line("rank 1: Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'lr'"),
            "rank 1: KeyError: 'lr'");
}

TEST(ReasonLine, OfChainedExceptionsIsTheOneThatWasRaisedLast) {
  EXPECT_EQ(reason_line("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'lr'\n\n"
                        "During handling of the above exception, another exception occurred:\n\n"
                        "Traceback (most recent call last):\n  File \"a.py\", line 5, in f\nRuntimeError: no lr\n"),
            "RuntimeError: no lr");
}

TEST(ReasonLine, OfATracebackThatIsCutIsTheFirstLine) {
  EXPECT_EQ(reason_line("Traceback (most recent call last):"), "Traceback (most recent call last):");
  EXPECT_EQ(reason_line("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n"),
            "Traceback (most recent call last):");
}

}  // namespace
}  // namespace cadre::base
