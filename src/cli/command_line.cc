#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

namespace cadre::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::one_of(std::vector<std::string> texts) {
  option_->check(CLI::IsMember(std::move(texts)));
  return *this;
}

Option& Option::in_range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::at_least(double least) { return in_range(least, std::numeric_limits<double>::max()); }

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::named(const std::string& what) {
  option_->option_text(what);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}

Command Command::add_command(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return Command(app_->add_subcommand(name, description));
}

Option Command::option(const std::string& names, Variable variable, const std::string& description) {
  CLI::Option* const option =
      std::visit([&](auto* value) { return app_->add_option(names, *value, description); }, variable);
  if (names.starts_with('-')) option->allow_extra_args(false);  // what follows a list belongs to the command
  return Option(option);
}

Option Command::flag(const std::string& names, bool* variable, const std::string& description) {
  return Option(variable != nullptr ? app_->add_flag(names, *variable, description)
                                    : app_->add_flag(names)->description(description));
}

void Command::show_defaults() { app_->option_defaults()->always_capture_default(); }
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::on_call(std::function<void()> call) { app_->callback(std::move(call)); }

Program::Program(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)) {}
Program::~Program() = default;

void Program::set_version(const std::string& text) {
  app_->set_version_flag("--version", text, "Show the version and exit");
}

int Program::parse(int argc, char** argv, int wrong_usage) {
  try {
    app_->parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : wrong_usage;  // 0: --help, --version
  }
}

}  // namespace cadre::cli
