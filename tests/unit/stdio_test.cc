// The beginning of a session in a process's standard output: noise and the mark.
#include "engine/cluster/stdio.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace cadre::engine::cluster {
namespace {

using channel::Bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string kMark(session_mark);

Bytes bytes_of(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}
std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Gives a search the text in pieces; returns what follows the mark, or "nothing".
std::string found_in(const std::string& text, std::size_t piece) {
  MarkSearch search;
  Bytes bytes;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const Bytes more = bytes_of(std::string_view(text).substr(at, piece));
    bytes.insert(bytes.end(), more.begin(), more.end());
    if (search.take(bytes)) return text_of(bytes) + text.substr(std::min(at + piece, text.size()));
  }
  return "nothing";
}

TEST(MarkSearch, FindsTheMarkHoweverItIsCut) {
  for (std::size_t piece = 1; piece < 80; ++piece) {
    EXPECT_EQ(found_in(kMark + "hello", piece), "hello") << piece;
    EXPECT_EQ(found_in("Loading modules\nCDRA" + kMark + "hello", piece), "hello") << piece;
  }
}

TEST(MarkSearch, TakesNoPartOfItForTheWhole) {
  const std::string most = kMark.substr(0, kMark.size() - 1);
  EXPECT_EQ(found_in(most, 7), "nothing");
  EXPECT_EQ(found_in(most + "x" + most + "x" + kMark + "hello", 7), "hello");
  EXPECT_EQ(found_in("Cadre's session begins here\n", 7), "nothing");  // as a text may have it
}

TEST(MarkSearch, SkipsUpToALimitAndThenQuotesTheLastLine) {
  std::string noise(max_noise_bytes - 8, 'x');
  noise += "\nepoch\x1b\n";
  ASSERT_EQ(noise.size(), max_noise_bytes);
  EXPECT_EQ(found_in(noise + kMark + "hello", 4096), "hello");
  EXPECT_THAT([&] { found_in("y" + noise + kMark + "hello", 4096); },
              ThrowsMessage<channel::ProtocolError>(
                  AllOf(HasSubstr("more than 1048576 bytes before cadre::init"), HasSubstr("lately \"epoch\\x1b\""))));
}

// Reads what is there, up to the end of the pipe.
std::string all_of(int pipe) {
  std::string text;
  std::array<char, 1000> space{};
  for (ssize_t count = 0; (count = ::read(pipe, space.data(), space.size())) > 0;)
    text.append(space.data(), static_cast<std::size_t>(count));
  return text;
}

TEST(StandardStreams, AreTakenFromTheProgram) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  std::array<int, 2> errors{};
  for (auto* pipe : {&in, &out, &errors}) ASSERT_EQ(::pipe2(pipe->data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(in[1], "ping", 4), 4);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(errors[1], STDERR_FILENO);
    std::printf("before ");  // NOLINT: and not written yet
    const StandardStreams streams = take_standard_streams();
    std::printf("after, and %d", std::getchar());
    std::fflush(stdout);
    std::array<char, 4> read{};
    const bool is_read = ::read(streams.input.get(), read.data(), 4) == 4;
    const bool is_written = ::write(streams.output.get(), read.data(), 4) == 4;
    const bool is_private = (::fcntl(streams.output.get(), F_GETFD) & FD_CLOEXEC) != 0;
    ::_exit(is_read && is_written && is_private ? 0 : 1);
  }
  for (const int end : {in[0], out[1], errors[1]}) ::close(end);
  EXPECT_EQ(all_of(out[0]), "ping");
  EXPECT_EQ(all_of(errors[0]), "before after, and -1");
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : {in[1], out[0], errors[0]}) ::close(end);
}

}  // namespace
}  // namespace cadre::engine::cluster
