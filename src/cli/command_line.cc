#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <sstream>
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

namespace {

// Returns the values of a list such as "TEXT:{csv,jsonl}"; nothing if there is none.
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t begin = type.find('{');
  const std::size_t end = type.rfind('}');
  if (begin == type.npos || end == type.npos || end < begin) return choices;
  std::istringstream list(type.substr(begin + 1, end - begin - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text{.description = option.get_description(),
                  .default_value = option.get_default_str(),
                  .choices = choices_in(option.get_type_name()),
                  .is_argument = option.get_positional(),
                  .is_required = option.get_required()};
  if (text.is_argument) text.names = {option.get_name(true)};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  const bool takes_value = option.get_type_size_max() > 0;
  if (takes_value) {
    const std::string& named = option.get_option_text();
    text.value = named.empty() ? option.get_type_name().substr(0, option.get_type_name().find(':')) : named;
  }
  text.is_repeated = text.is_argument && option.get_items_expected_max() > 1;
  return text;
}

CommandText text_of(const CLI::App& app) {
  CommandText text{.name = app.get_name(), .description = app.get_description(), .footer = app.get_footer()};
  for (const bool arguments : {true, false}) {
    for (const CLI::Option* const option : app.get_options()) {
      if (option->get_positional() == arguments) text.options.push_back(text_of(*option));
    }
  }
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    text.commands.push_back(text_of(*command));
  return text;
}

}  // namespace

CommandText Command::text() const { return text_of(*app_); }

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
