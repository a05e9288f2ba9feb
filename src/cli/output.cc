#include "cli/output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/display_text.h"
#include "base/host_object.h"
#include "cadre/error.h"
#include "tune/console/trial_table.h"
#include "view/screen.h"
#include "view/terminal.h"

namespace cadre::cli {
namespace console = tune::console;
namespace {

constexpr std::size_t kLabelWidth = 14;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kWidestKey = 40;
constexpr std::size_t kNarrowestText = 20;
constexpr std::size_t kWidthOfFiles = 200;
constexpr std::size_t kLinesOfTable = 4;  // borders and head
constexpr std::size_t kFewestRows = 5;
constexpr std::string_view kEllipsis = "…";  // of a text that is cut

// Returns the beginning of a text: all of it, or as much as is wider than `width`, however long the text is.
std::string_view beginning_of(std::string_view text, std::size_t width) {
  for (std::size_t size = 4 * (width + 1);; size *= 2) {
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) ++size;
    if (size >= text.size()) return text;
    const std::string_view beginning = text.substr(0, size);
    if (base::display_width(beginning) > width) return beginning;
  }
}

// Removes from `text` and returns the next piece that fits into `width`, cut at a blank if there is one.
std::string take_line(std::string_view& text, std::size_t width) {
  const std::string_view beginning = beginning_of(text, width);
  if (base::display_width(beginning) <= width) {
    text = {};
    return std::string(beginning);
  }
  // With a blank added it is wider than the columns for the piece and the ellipsis, and is cut.
  const std::string cut = base::first_columns(std::string(beginning) + ' ', width + 1, base::Encoding::utf8);
  const std::size_t blank = beginning.rfind(' ', cut.size() - kEllipsis.size());
  if (blank == std::string_view::npos || blank == 0) {  // a long word, such as a path, stays whole
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  }
  const std::string line(text.substr(0, blank));
  text.remove_prefix(blank + 1);
  return line;
}

}  // namespace

base::Encoding encoding() {
  static const base::Encoding encoding = base::encoding_of_environment();
  return encoding;
}

std::string shown(std::string_view text) { return base::printable(text, encoding()); }

std::string shown_lines(std::string_view text) { return base::printable_lines(text, encoding()); }

std::string value_text(const Value& value) {
  const Value plain = base::without_host_objects(value);
  return shown(plain.is_string() ? plain.get<std::string>() : to_json(plain));
}

std::string values_text(const Dict& values) {
  std::string text;
  for (const auto& [key, value] : values) text += (text.empty() ? "" : ", ") + shown(key) + "=" + value_text(value);
  return text;
}

Cell text_cell(std::string_view text, Style style) { return {shown(text), style, false}; }
Cell number_cell(std::string text) { return {std::move(text), Style::plain, true}; }
Cell value_cell(const Value* value) { return console::value_cell(value, encoding()); }

Column column(std::string_view head, int rank, bool number) { return {{shown(head), Style::bold, number}, rank, {}}; }

std::string time_text(double seconds_since_1970) {
  if (seconds_since_1970 == 0) return {};
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds_since_1970)));
}

Page::Page()
    : width_(::isatty(STDOUT_FILENO) == 1 || std::getenv("COLUMNS") != nullptr ? view::window_size().columns
                                                                               : kWidthOfFiles),
      lines_(::isatty(STDOUT_FILENO) == 1 || std::getenv("LINES") != nullptr ? std::optional(view::window_size().lines)
                                                                             : std::nullopt),
      styles_(view::is_live_terminal() && view::styles_are_wanted()) {}

std::optional<std::size_t> Page::rows_that_fit(std::size_t others) const {
  if (!lines_) return std::nullopt;
  const auto used =
      static_cast<std::size_t>(std::ranges::count(text_, '\n')) + kLinesOfTable + others + 1;  // 1 for the prompt
  return std::max(*lines_ - std::min(*lines_, used), kFewestRows);
}

std::string Page::styled(const std::string& text, Style style) const {
  return styles_ ? view::styled(text, style) : text;
}

void Page::heading(const std::string& text) { line(text, Style::bold); }

void Page::line(const std::string& text, Style style) { text_ += styled(text, style) + '\n'; }

void Page::field(const std::string& label, const std::string& text) { add_field(label, kLabelWidth, text); }

void Page::pairs(const std::string& title, const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return;
  std::size_t widest = 0;
  for (const auto& [key, text] : pairs) widest = std::max(widest, base::display_width(key));
  heading(title);
  for (const auto& [key, text] : pairs)
    add_field(key, std::min(widest, kWidestKey) + kIndent, text.empty() ? "\"\"" : text);
}

void Page::add_field(const std::string& label, std::size_t label_width, std::string_view text) {
  const std::size_t before = kIndent + label_width;
  std::string head = label + std::string(label_width - std::min(label_width - 1, base::display_width(label)), ' ');
  while (!text.empty()) {
    const std::string part = take_line(text, std::max(width_, before + kNarrowestText) - before);
    text_ += std::string(kIndent, ' ') + head + part + '\n';
    head.assign(label_width, ' ');
  }
}

void Page::table(const Table& table) {
  for (const view::Line& line : view::format_table(table, width_, encoding())) {
    for (const view::Span& span : line) text_ += styled(span.text, span.style);
    text_ += '\n';
  }
}

void Page::write() const { write_raw(text_); }

void write_raw(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return;
  throw StorageError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void write_json(const Value& document) { write_raw(to_json(document) + '\n'); }

void write_path(const std::string& path) { write_raw((::isatty(STDOUT_FILENO) == 1 ? shown(path) : path) + '\n'); }

}  // namespace cadre::cli
