#include "engine/cluster/shell.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cut_text.h"

namespace cadre::engine::cluster {
namespace {

constexpr std::size_t kMostPrintedBytes = 1000;
constexpr const char* kBlanks = " \t\r";

}  // namespace

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

// A redirection that fails would end the shell. With -C it writes to no file that was there before.
std::string log_lines(const std::filesystem::path& log, std::string_view number) {
  return fmt::format("log={}{}\nif (set -C; : >\"$log\") 2>/dev/null; then exec 2>>\"$log\"; fi\n",
                     shell_word(log.string()), number);
}

std::string in_one_line(std::string_view printed) {
  std::string line;
  while (!printed.empty()) {
    std::string_view next = printed.substr(0, printed.find('\n'));
    printed.remove_prefix(std::min(next.size() + 1, printed.size()));
    next.remove_prefix(std::min(next.find_first_not_of(kBlanks), next.size()));
    next = next.substr(0, next.find_last_not_of(kBlanks) + 1);
    if (!next.empty()) line += (line.empty() ? "" : "; ") + std::string(next);
  }
  if (line.size() > kMostPrintedBytes) line = "..." + std::string(base::last_bytes(line, kMostPrintedBytes));
  return line;
}

std::string last_line(std::string_view printed) {
  printed = printed.substr(0, printed.find_last_not_of(" \n") + 1);
  printed = printed.substr(printed.find_last_of('\n') + 1);
  return std::string(base::first_bytes(printed, kMostPrintedBytes));
}

}  // namespace cadre::engine::cluster
