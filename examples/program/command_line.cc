#include "program/command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace examples {

CommandLine::CommandLine(const std::string& description) : app_(std::make_unique<CLI::App>(description)) {
  app_->option_defaults()->always_capture_default();
}
CommandLine::~CommandLine() = default;

void CommandLine::option(const std::string& name, Variable variable, const std::string& description) {
  std::visit([&](auto* value) { app_->add_option(name, *value, description); }, variable);
}

void CommandLine::choice(const std::string& name, std::string* variable, std::vector<std::string> texts,
                         const std::string& description) {
  app_->add_option(name, *variable, description)->check(CLI::IsMember(std::move(texts)));
}

void CommandLine::flag(const std::string& name, bool* variable, const std::string& description) {
  app_->add_flag(name, *variable, description);
}

void CommandLine::then(std::function<void()> call) { app_->final_callback(std::move(call)); }

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error);
  }
}

}  // namespace examples
