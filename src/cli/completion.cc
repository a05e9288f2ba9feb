#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cadre::cli {
namespace {

enum class Kind { none, choice, file, directory };

// Returns what completes the value of an option or an argument.
Kind kind_of(const OptionText& option) {
  constexpr std::string_view directories[] = {"experiment", "experiments", "directory", "places",
                                              "study",      "EXPERIMENT",  "DIRECTORY"};
  if (!option.choices.empty()) return Kind::choice;
  const std::string& name = option.is_argument ? option.names.front() : option.value;
  if (std::ranges::find(directories, name) != std::end(directories)) return Kind::directory;
  const bool is_file = option.value == "FILE" || std::ranges::find(option.names, "--output") != option.names.end() ||
                       name == "command";  // a program and its arguments
  return is_file ? Kind::file : Kind::none;
}

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (!option.is_argument) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Returns text in single quotes, as all three shells have it; `quote`: a single quote inside of it.
std::string in_quotes(const std::string& text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    c == '\'' ? static_cast<void>(out += quote) : out.push_back(c);
  }
  return out + "'";
}
std::string shell_quoted(const std::string& text) { return in_quotes(text, R"('\'')"); }

// ---- bash

std::string bash_words(const OptionText& option) {
  switch (kind_of(option)) {
    case Kind::choice:
      return fmt::format("-W '{}'", fmt::join(option.choices, " "));
    case Kind::file:
      return "-f";
    case Kind::directory:
      return "-d";
    case Kind::none:
      break;
  }
  return "";
}

// Returns the options that take a value.
std::vector<std::string> valued_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (!option.is_argument && !option.value.empty())
      names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

void append_bash_values(std::string& out, const CommandText& command) {
  for (const OptionText& option : command.options) {
    if (option.is_argument || option.value.empty()) continue;
    for (const std::string& name : option.names)
      out += fmt::format("    {}/{}) takes=1 words=\"{}\" ;;\n", command.name, name, bash_words(option));
  }
}

void append_bash_arguments(std::string& out, const CommandText& command) {
  int number = 0;
  for (const OptionText& option : command.options) {
    if (!option.is_argument) continue;
    out += fmt::format("    {}/{}) words=\"{}\" ;;\n", command.name, option.is_repeated ? "*" : std::to_string(number),
                       bash_words(option));
    ++number;
  }
}

// ---- zsh

// Escapes a description for _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionText& option) {
  switch (kind_of(option)) {
    case Kind::choice:
      return fmt::format("({})", fmt::join(option.choices, " "));
    case Kind::file:
      return "_files";
    case Kind::directory:
      return "_files -/";
    case Kind::none:
      break;
  }
  return " ";
}

std::string zsh_specification(const OptionText& option, const std::string& name) {
  if (option.is_argument)
    return fmt::format("{}:{}:{}",
                       option.is_repeated   ? "*"
                       : option.is_required ? ""
                                            : ":",
                       zsh_text(option.description), zsh_action(option));
  std::string others;
  for (const std::string& other : option.names) others += (others.empty() ? "" : " ") + other;
  const bool is_long = name.starts_with("--");
  std::string text = fmt::format("({}){}{}[{}]", others, name,
                                 option.value.empty() ? ""
                                 : is_long            ? "="
                                                      : "+",
                                 zsh_text(option.description));
  if (!option.value.empty()) text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
  return text;
}

void append_zsh_command(std::string& out, const CommandText& command) {
  out += fmt::format("        {})\n          _arguments", command.name);
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names)
      out += " \\\n            " + shell_quoted(zsh_specification(option, name));
  }
  out += " ;;\n";
}

// ---- fish

std::string fish_quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') escaped += '\\';
    escaped += c;
  }
  return in_quotes(escaped, "\\'");
}

std::string fish_action(const OptionText& option) {
  switch (kind_of(option)) {
    case Kind::choice:
      return fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
    case Kind::file:
      return " -r -F";
    case Kind::directory:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::none:
      break;
  }
  return " -x";
}

void append_fish_option(std::string& out, const std::string& program, const std::string& command,
                        const OptionText& option) {
  const std::string condition = command.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + command;
  if (option.is_argument && kind_of(option) == Kind::none) return;
  out += fmt::format("complete -c {} -n '{}'", program, condition);
  if (option.is_argument) {
    const std::string action = fish_action(option);
    out += action.substr(action.find(kind_of(option) == Kind::file ? " -F" : " -a"));
  } else {
    for (const std::string& name : option.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.value.empty()) out += fish_action(option);
    out += " -d " + fish_quoted(option.description);
  }
  out += '\n';
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::vector<std::string> commands;
  for (const CommandText& command : program.commands) commands.push_back(command.name);
  std::string out = fmt::format(
      R"(# Completion of {0} for bash: source it, or put it into bash-completion's folder. Made by `{0} completion bash`.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= options= valued= words= takes= argument=0 i
  if [[ $before == "=" ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  elif [[ $word == "=" ]]; then
    word=
  fi
  for ((i = 1; i < COMP_CWORD && ${{#command}} == 0; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || command=${{COMP_WORDS[i]}}
  done
  case "$command" in
    "") options='{1}' words="-W '{2}'" ;;
)",
      program.name, fmt::join(option_names(program), " "), fmt::join(commands, " "));
  for (const CommandText& command : program.commands)
    out += fmt::format("    {}) options='{}' valued=' {} ' ;;\n", command.name, fmt::join(option_names(command), " "),
                       fmt::join(valued_names(command), " "));
  out += R"(  esac
  for ((; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == "=" || ${COMP_WORDS[i - 1]} == "=" ]] && continue
    [[ $valued == *" ${COMP_WORDS[i - 1]} "* ]] || argument=$((argument + 1))
  done
  case "$command/$before" in
)";
  for (const CommandText& command : program.commands) append_bash_values(out, command);
  out += "  esac\n  [[ -n $takes ]] || case \"$command/$argument\" in\n";
  for (const CommandText& command : program.commands) append_bash_arguments(out, command);
  out += fmt::format(
      R"(  esac
  COMPREPLY=()
  if [[ -z $takes && $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [[ $words == -W* ]]; then
    words=${{words#-W }}
    mapfile -t COMPREPLY < <(compgen -W "${{words//\'/}}" -- "$word")
  elif [[ -n $words ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen $words -- "$word")
  fi
}}
complete -F _{0} {0}
)",
      program.name);
  return out;
}

std::string zsh_completion(const CommandText& program) {
  std::string out = fmt::format(
      R"(#compdef {0}
# Completion of {0} for zsh: a file _{0} in a folder of $fpath, or sourced. Made by `{0} completion zsh`.
_{0}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C)",
      program.name);
  for (const OptionText& option : program.options) {
    for (const std::string& name : option.names)
      out += " \\\n    " + shell_quoted(fmt::format("(- *){}[{}]", name, zsh_text(option.description)));
  }
  out +=
      " \\\n    '1: :->command' '*:: :->arguments'\n  case $state in\n    command)\n      local -a commands\n      "
      "commands=(\n";
  for (const CommandText& command : program.commands) {
    std::string description = command.description;
    std::ranges::replace(description, '\n', ' ');
    out += "        " + shell_quoted(command.name + ":" + description) + "\n";
  }
  out += fmt::format(
      "      )\n      _describe -t commands '{} command' commands ;;\n    arguments)\n      case $words[1] in\n",
      program.name);
  for (const CommandText& command : program.commands) append_zsh_command(out, command);
  out += fmt::format(
      "      esac ;;\n  esac\n}}\nif [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n",
      program.name);
  return out;
}

std::string fish_completion(const CommandText& program) {
  std::string out = fmt::format(
      "# Completion of {0} for fish: a file {0}.fish in ~/.config/fish/completions. Made by `{0} completion fish`.\n"
      "complete -c {0} -f\n",
      program.name);
  for (const OptionText& option : program.options) append_fish_option(out, program.name, "", option);
  for (const CommandText& command : program.commands) {
    out += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", program.name, command.name,
                       fish_quoted(command.description));
    for (const OptionText& option : command.options) append_fish_option(out, program.name, command.name, option);
  }
  return out;
}

}  // namespace cadre::cli
