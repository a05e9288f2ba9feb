#include "base/reason_line.h"

namespace cadre::base {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";

}  // namespace

std::string reason_line(std::string_view error) {
  const std::string first(error.substr(0, error.find('\n')));
  if (!first.ends_with(kTraceback)) return first;
  std::string_view exception;
  bool in_frames = true;
  for (std::string_view rest = error.substr(first.size()); !rest.empty();) {
    rest.remove_prefix(1);  // the end of the line before
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size());
    if (line == kTraceback) {
      in_frames = true;  // of an exception that was raised while the one before was handled
    } else if (in_frames && !line.empty() && !line.starts_with(' ')) {
      exception = line;
      in_frames = false;
    }
  }
  if (exception.empty()) return first;
  return first.substr(0, first.size() - kTraceback.size()) + std::string(exception);
}

}  // namespace cadre::base
