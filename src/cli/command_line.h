// Command lines of programs with commands: cadre, the benchmarks and the soak. CLI11 reads them; its header, which
// takes longer to compile than most commands, is in command_line.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cadre::cli {

// Describes a command line as text: for pages and for completion in shells.
struct OptionText {
  std::vector<std::string> names = {};  // "-o", "--output"; of an argument its only name
  std::string value = {};               // name of its value, "TEXT"; empty: a flag
  std::string description = {};
  std::string default_value = {};         // if --help shows it
  std::vector<std::string> choices = {};  // the only values; empty: any
  bool is_argument = false;
  bool is_required = false;
  bool is_repeated = false;  // an argument that takes all that follow
};
struct CommandText {
  std::string name = {};
  std::string description = {};
  std::string footer = {};
  std::vector<OptionText> options = {};  // arguments in their order first
  std::vector<CommandText> commands = {};
};

// The variable that an option's text is read into.
using Variable = std::variant<std::string*, std::filesystem::path*, std::int64_t*, std::uint64_t*, double*,
                              std::optional<std::size_t>*, std::vector<std::string>*, std::vector<std::int64_t>*>;

// An option or argument of a command. Belongs to the command, as a reference does.
class Option {
 public:
  Option& required();
  // Only these are accepted.
  Option& one_of(std::vector<std::string> texts);
  Option& in_range(double least, double most);
  Option& at_least(double least);
  // The two are not given together.
  Option& excludes(const Option& other);
  // The help names what it takes so, in capital letters.
  Option& named(const std::string& what);
  // The help shows the variable's value, as it is now.
  Option& show_default();
  // Its text is a list with these between its parts; without it, each time that the option is given adds one.
  Option& separated_by(char separator);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

// A command, or the program itself. Belongs to the program, as a reference does: the variables of its options are
// filled when the command line is parsed, and live until then.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // One of the commands must be given.
  Command add_command(const std::string& name, const std::string& description);
  // `names` is "-o,--output" for an option and "experiment" for an argument.
  Option option(const std::string& names, Variable variable, const std::string& description = "");
  // Without a variable the option is only accepted.
  Option flag(const std::string& names, bool* variable, const std::string& description);
  // All options that are added from now on show their defaults.
  void show_defaults();
  // Shown below the options.
  void footer(const std::string& text);
  // Returns what has been added so far.
  CommandText text() const;
  // Called when the command was given, with its options filled.
  void on_call(std::function<void()> call);

 private:
  CLI::App* app_;
};

class Program {
 public:
  Program(const std::string& description, const std::string& name);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  Command command() { return Command(app_.get()); }
  // Adds --version.
  void set_version(const std::string& text);
  // Fills the variables and calls the command. Returns the exit code: 0, also after --help and --version, and
  // `wrong_usage` after saying on standard error what is wrong.
  int parse(int argc, char** argv, int wrong_usage);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace cadre::cli
