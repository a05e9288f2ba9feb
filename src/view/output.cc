#include "view/output.h"

#include <cstdio>

#include "worker/host.h"

namespace cadre::view {
namespace {

bool print_by_host(std::string_view lines, bool is_error) {
  Host* const host = worker::find_host();
  return host != nullptr && host->print(lines, is_error);
}

void print(std::string_view lines, bool is_error) {
  if (lines.empty() || print_by_host(lines, is_error)) return;
  std::FILE* const stream = is_error ? stderr : stdout;
  std::fwrite(lines.data(), 1, lines.size(), stream);
  std::fflush(stream);
}

}  // namespace

bool host_prints() { return print_by_host("", false); }

bool host_shows_progress() {
  Host* const host = worker::find_host();
  return host != nullptr && host->shows_progress();
}

void print(std::string_view lines) { print(lines, false); }
void print_error(std::string_view lines) { print(lines, true); }

}  // namespace cadre::view
