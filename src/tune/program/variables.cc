#include "tune/program/variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "cadre/error.h"
#include "tune/program/child.h"

extern char** environ;

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

// In the trial's directory, so that a checkpoint is moved from it and not copied.
constexpr const char* kFolder = ".program";

}  // namespace

ProgramVariables::ProgramVariables(const Session& session)
    : assignment_(session.assignment()), folder_(fs::path(assignment_.trial_directory) / kFolder) {
  const auto set = [this](std::string_view name, std::string value) {
    variables_.insert_or_assign(std::string(name), std::move(value));
  };
  set(variable::report_fd, std::to_string(kReportDescriptor));
  set(variable::checkpoint_in, assignment_.checkpoint);
  set(variable::checkpoint_out, checkpoint_out());
  set(variable::config_file, folder_ / "config.json");
  set(variable::experiment, assignment_.experiment_name);
  set(variable::trial_id, assignment_.trial_id);
  set(variable::trial_name, assignment_.trial_name);
  set(variable::trial_dir, assignment_.trial_directory);
  set(variable::seed, std::to_string(session.seed()));
}

void ProgramVariables::make_files() const {
  base::remove_tree(folder_);
  base::make_directory(folder_);
  base::write_file(folder_ / "config.json", base::to_pretty_json(assignment_.config.dict()) + "\n");
}

fs::path ProgramVariables::checkpoint_out() const { return folder_ / "checkpoint"; }

std::string ProgramVariables::value_of(const std::string& name) const {
  if (const Value* value = assignment_.config.find(name)) {
    try {
      return argument_text(*value);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("the placeholder {{{}}}: {}", name, error.what()));
    }
  }
  if (const auto variable = variables_.find(name); variable != variables_.end()) return variable->second;
  throw InvalidArgument(fmt::format("the placeholder {{{}}} has no value in this trial's config", name));
}

std::string ProgramVariables::fill(std::string_view text) const {
  return fill_placeholders(text, [this](const std::string& name) { return value_of(name); });
}

std::vector<std::string> ProgramVariables::command() const {
  std::vector<std::string> command;
  for (const std::string& word : assignment_.program.command) command.push_back(command.empty() ? word : fill(word));
  return command;
}

std::vector<std::string> ProgramVariables::environment() const {
  std::map<std::string, std::string, std::less<>> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const std::size_t equals = text.find('='); equals != text.npos)
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const auto& [name, value] : variables_) all.insert_or_assign(name, value);
  // A test of the variable alone says whether there is a checkpoint.
  if (assignment_.checkpoint.empty()) all.erase(std::string(variable::checkpoint_in));
  for (const auto& [name, value] : assignment_.program.environment) all.insert_or_assign(name, fill(value));
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(name + "=" + value);
  return environment;
}

std::string ProgramVariables::working_directory() const { return fill(assignment_.program.working_directory); }

fs::path ProgramVariables::in_working_directory(const fs::path& path) const {
  const fs::path directory = working_directory();
  return directory.empty() ? fs::absolute(path) : directory / path;
}

fs::path ProgramVariables::metrics_file() const { return in_working_directory(fill(assignment_.program.metrics_file)); }

}  // namespace cadre::tune
