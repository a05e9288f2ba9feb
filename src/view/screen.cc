#include "view/screen.h"

#include <fmt/format.h>

namespace cadre::view {
namespace {

constexpr std::string_view kToHome = "\x1b[H";
constexpr std::string_view kEraseToEndOfLine = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

std::string_view code_of(Style style) {
  switch (style) {
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::good:
      return "\x1b[32m";
    case Style::bad:
      return "\x1b[31m";
    case Style::plain:
      break;
  }
  return {};
}

}  // namespace

std::string styled(std::string_view text, Style style) {
  const std::string_view code = text.empty() ? std::string_view() : code_of(style);
  return code.empty() ? std::string(text) : std::string(code).append(text).append("\x1b[m");
}

std::string Screen::draw(WindowSize size, std::string_view log, const Lines& block) {
  // A log line may wrap; then the text after it cannot be erased line by line.
  std::string out = begin(size, log, !log.empty());
  for (const Line& line : block) out.append(render(line)).append(kEraseToEndOfLine).append("\r\n");
  out += kEraseBelow;
  drawn_ = block.size();
  size_ = size;
  return out;
}

std::string Screen::finish(WindowSize size, std::string_view log, const Lines& block) {
  std::string out = begin(size, log, true);
  for (const Line& line : block) out.append(render(line)).append("\r\n");
  drawn_ = 0;
  return out;
}

// Moves to the beginning of the block and writes the log.
std::string Screen::begin(WindowSize size, std::string_view log, bool erase) {
  std::string out;
  if (drawn_ > 0 && size != size_) {
    out.append(size.lines, '\n').append(kToHome);
  } else if (drawn_ > 0) {
    out += fmt::format("\r\x1b[{}A", drawn_);
  }
  if (drawn_ > 0 && erase) out += kEraseBelow;
  for (const char c : log) c == '\n' ? out += "\r\n" : out += c;
  return out;
}

std::string Screen::render(const Line& line) const {
  std::string text;
  for (const auto& [piece, style] : line) {
    text += styles_ ? styled(piece, style) : piece;
  }
  return text;
}

}  // namespace cadre::view
