#include "tune/program/report_line.h"

#include "base/cut_text.h"
#include "base/display_text.h"
#include "base/json.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

constexpr std::size_t kMostShown = 200;  // bytes of a line in a message

[[noreturn]] void refuse_line(std::string_view line, const std::string& why) {
  const std::string shown(base::first_bytes(line, kMostShown));
  throw InvalidArgument("the program wrote to CADRE_REPORT_FD: " + shown + (line.size() > kMostShown ? "..." : "") +
                        "\n" + why);
}

// Removes a word and the blanks after it from the beginning of a text; returns false if it begins otherwise.
bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  std::string_view rest = text.substr(word.size());
  if (!rest.empty() && rest.front() != ' ') return false;
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  text = rest;
  return true;
}

Metrics parse_metrics(std::string_view json, std::string_view line) {
  try {
    const Value value = base::parse_json(json, "the line");
    if (value.is_dict()) return Metrics(value.dict());
  } catch (const StorageError& error) {
    refuse_line(line, error.what());
  }
  refuse_line(line, "a report is a JSON object of metrics, as {\"loss\": 0.25}");
}

}  // namespace

ReportLine parse_report_line(std::string_view line) {
  using Kind = ReportLine::Kind;
  std::string_view rest = line;
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  if (take_word(rest, "saved")) return {.kind = Kind::saved, .directory = std::string(rest)};
  if (take_word(rest, "ask")) return {.kind = Kind::ask, .metrics = parse_metrics(rest, line)};
  if (take_word(rest, "offer")) return {.kind = Kind::offer, .metrics = parse_metrics(rest, line)};
  if (rest.starts_with('{')) return {.kind = Kind::tell, .metrics = parse_metrics(rest, line)};
  refuse_line(line, "a line is a JSON object of metrics, perhaps after \"ask\" or \"offer\", or \"saved\"");
}

}  // namespace cadre::tune
