#include "view/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "view/output.h"

namespace cadre::view {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t known(unsigned short asked, const char* variable, std::size_t otherwise) {
  if (asked > 0) return asked;
  const int set = std::atoi(environment(variable).c_str());
  return set > 0 ? static_cast<std::size_t>(set) : otherwise;
}

bool wait_writable(int timeout_ms) {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, timeout_ms) > 0;
}

}  // namespace

bool is_live_terminal() {
  const std::string term = environment("TERM");
  return !host_prints() && ::isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
}

bool styles_are_wanted() { return environment("NO_COLOR").empty(); }

WindowSize window_size() {
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return {known(size.ws_col, "COLUMNS", 80), known(size.ws_row, "LINES", 24)};
}

bool is_writable() { return wait_writable(0); }

void write_to_terminal(std::string_view bytes) {
  std::fflush(stdout);
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      wait_writable(-1);  // another program made it non-blocking
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace cadre::view
