#include "loggers/error_file.h"

namespace cadre::loggers {
namespace {

constexpr std::string_view kHead = "Attempt ";
constexpr std::string_view kLeftOut = "Earlier failures are left out.\n";

// Returns the failures in the second half of `text`, from the first one that begins there.
std::string_view newer_half(std::string_view text) {
  const std::size_t line = text.find(std::string("\n") + std::string(kHead), text.size() / 2);
  return line == text.npos ? std::string_view() : text.substr(line + 1);
}

}  // namespace

void ErrorFile::add(std::int64_t attempt, const std::string& message) {
  const std::string failure = std::string(kHead) + std::to_string(attempt) + ": " + message + "\n";
  const auto size = static_cast<std::size_t>(file_.stamp().size);
  if (size == 0) {
    file_.replace(failure);
  } else if (size + failure.size() <= kMostBytes) {
    file_.append(failure);
  } else {
    const std::string text = base::read_file(file_.path());
    file_.replace(std::string(kLeftOut).append(newer_half(text)).append(failure));
  }
}

}  // namespace cadre::loggers
