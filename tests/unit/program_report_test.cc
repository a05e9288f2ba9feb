// The header for programs that `cadre tune` starts.
#include "cadre/report.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/file_descriptor.h"

namespace {

// A program that Cadre has started, seen from within.
class ProgramReport : public testing::Test {
 protected:
  ProgramReport() : before_(std::signal(SIGPIPE, SIG_DFL)) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    programs_ = cadre::base::FileDescriptor(ends[0]);
    cadres_ = cadre::base::FileDescriptor(ends[1]);
    ::setenv("CADRE_REPORT_FD", std::to_string(ends[0]).c_str(), 1);
  }
  ~ProgramReport() override {
    ::unsetenv("CADRE_REPORT_FD");
    std::signal(SIGPIPE, before_);
  }
  void answer(const std::string& line) const {
    ASSERT_EQ(::send(cadres_.get(), line.data(), line.size(), MSG_NOSIGNAL), std::ssize(line));
  }
  std::string received() const {
    std::string text(1000, ' ');
    const ssize_t size = ::recv(cadres_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return text.substr(0, size < 0 ? 0 : static_cast<std::size_t>(size));
  }

  cadre::base::FileDescriptor programs_;
  cadre::base::FileDescriptor cadres_;

 private:
  void (*before_)(int);
};

TEST_F(ProgramReport, IsALineThatIsAnswered) {
  answer("checkpoint\nstop\n");
  EXPECT_EQ(cadre_tell("{\"loss\": 1}"), CADRE_CONTINUE);
  EXPECT_EQ(cadre_offer("{\"loss\": 2}"), CADRE_CHECKPOINT);
  EXPECT_EQ(cadre_saved(), CADRE_STOP);
  EXPECT_EQ(received(), "{\"loss\": 1}\noffer {\"loss\": 2}\nsaved\n");
}

TEST_F(ProgramReport, IsAnErrorAndNoSignalWhenCadreIsGone) {
  cadres_.reset();
  errno = 0;
  EXPECT_EQ(cadre_tell("{\"loss\": 1}"), CADRE_ERROR);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(cadre_ask("{\"loss\": 1}"), CADRE_ERROR);
}

TEST_F(ProgramReport, IsAnErrorWhenCadreEndsInsteadOfAnAnswer) {
  ::shutdown(cadres_.get(), SHUT_WR);
  errno = 0;
  EXPECT_EQ(cadre_ask("{\"loss\": 1}"), CADRE_ERROR);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
