#include "engine/cluster/stdio.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <span>
#include <utility>

#include "base/cut_text.h"
#include "base/display_text.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace {

constexpr std::size_t kMostQuoted = 200;

// Returns the last complete line of what was printed, or else what there is of it, as it can be shown.
std::string last_line(std::span<const std::byte> noise) {
  std::string_view text(reinterpret_cast<const char*>(noise.data()), noise.size());
  if (const std::size_t end = text.rfind('\n'); end != text.npos) text = text.substr(0, end);
  while (text.ends_with('\n')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);
  return base::printable(base::first_bytes(text, kMostQuoted), base::Encoding::utf8);
}

// Returns a further descriptor of the same stream, which no program that is executed inherits.
base::FileDescriptor copy_of(int stream) {
  base::FileDescriptor copy(::fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy)
    throw EngineError(
        fmt::format("this agent's session is to be in its standard input and output, and descriptor {} "
                    "cannot be used: {}",
                    stream, base::last_system_error()));
  return copy;
}

}  // namespace

bool MarkSearch::take(channel::Bytes& bytes) {
  const auto* const mark = reinterpret_cast<const std::byte*>(session_mark.data());
  const auto found = std::search(bytes.begin(), bytes.end(), mark, mark + session_mark.size());
  const bool is_found = found != bytes.end();
  // The end of the bytes may be the beginning of the mark.
  const auto kept = std::min<std::ptrdiff_t>(std::ssize(bytes), std::ssize(session_mark) - 1);
  const auto noise_end = is_found ? found : bytes.end() - kept;
  noise_bytes_ += static_cast<std::size_t>(noise_end - bytes.begin());
  if (noise_bytes_ > max_noise_bytes)
    throw channel::ProtocolError(
        fmt::format("it has printed more than {} bytes before cadre::init, lately \"{}\"; with the link \"stdio\" its "
                    "standard output carries the session: call cadre::init at the beginning of the program",
                    max_noise_bytes, last_line({bytes.begin(), found})));
  bytes.erase(bytes.begin(), is_found ? found + std::ssize(session_mark) : noise_end);
  return is_found;
}

StandardStreams take_standard_streams() {
  StandardStreams streams{.input = copy_of(STDIN_FILENO), .output = copy_of(STDOUT_FILENO)};
  const base::FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int errors = ::fcntl(STDERR_FILENO, F_GETFD) >= 0 ? STDERR_FILENO : nothing.get();
  if (!nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0 || ::dup2(errors, STDOUT_FILENO) < 0)
    throw EngineError("an agent's standard input and output cannot be redirected: " + base::last_system_error());
  std::clearerr(stdin);
  return streams;
}

}  // namespace cadre::engine::cluster
