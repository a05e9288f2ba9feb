#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace cadre::cli {
namespace {

// Escapes one line of text.
std::string roff(std::string_view line) {
  std::string out;
  if (line.starts_with('.') || line.starts_with('\'')) out += "\\&";
  for (const char c : line) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Appends lines as they are, as in --help.
void append_lines(std::string& out, const std::string& text) {
  out += ".nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += line.empty() ? ".sp\n" : roff(line) + "\n";
  out += ".fi\n";
}

std::string usage_of(const CommandText& program, const CommandText& command) {
  std::string usage = fmt::format("\\fB{} {}\\fR [\\fIoptions\\fR]", roff(program.name), roff(command.name));
  for (const OptionText& option : command.options) {
    if (!option.is_argument) continue;
    const std::string name = fmt::format("\\fI{}\\fR{}", roff(option.names.front()), option.is_repeated ? "..." : "");
    usage += option.is_required ? " " + name : " [" + name + "]";
  }
  return usage;
}

void append_option(std::string& out, const OptionText& option) {
  out += ".TP\n";
  if (option.is_argument) {
    out += fmt::format("\\fI{}\\fR\n", roff(option.names.front()));
  } else {
    std::string names;
    for (const std::string& name : option.names) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    }
    if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += names + "\n";
  }
  const bool names_default = option.description.find('[') != std::string::npos;
  out += roff(option.description);
  if (!option.default_value.empty() && !names_default) out += fmt::format(" [{}]", roff(option.default_value));
  out += '\n';
}

}  // namespace

std::string man_page(const CommandText& program, std::string_view summary, std::string_view version) {
  std::string out = fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", upper(program.name),
                                version, roff(program.name), roff(summary));
  out +=
      fmt::format(".SH SYNOPSIS\n\\fB{0}\\fR \\fIcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH DESCRIPTION\n",
                  roff(program.name));
  std::istringstream description(program.description);
  for (std::string line; std::getline(description, line);) out += roff(line) + "\n";
  out += ".SH OPTIONS\n";
  for (const OptionText& option : program.options) append_option(out, option);
  out += ".SH COMMANDS\n";
  for (const CommandText& command : program.commands) {
    out += fmt::format(".SS {}\n{}\n.PP\n{}.\n", roff(program.name + " " + command.name), usage_of(program, command),
                       roff(command.description));
    for (const OptionText& option : command.options) {
      if (option.names.back() != "--help") append_option(out, option);  // said once, of all commands
    }
    if (command.footer.empty()) continue;
    out += ".PP\n";
    append_lines(out, command.footer.substr(command.footer.find_first_not_of('\n')));
  }
  out += ".SH NOTES\n";
  append_lines(out, program.footer);
  return out;
}

}  // namespace cadre::cli
