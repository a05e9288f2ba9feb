// cadre/tune/program.h: a program as a Trainable.
#include "cadre/tune/program.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "cadre/tune/trainable.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

// Relative paths begin where the program was given, also after a restore in another directory.
std::string absolute(const std::string& path) {
  return path.find('/') == path.npos ? path : fs::absolute(path).lexically_normal().string();
}

// Returns the name of a program or script: "train" for {"python3", "train.py"}.
std::string name_of(const std::vector<std::string>& command) {
  const auto is_file = [](const std::string& word) {
    std::error_code error;
    return fs::is_regular_file(word, error);
  };
  const auto file = std::ranges::find_if(command, is_file);
  std::string name = fs::path(file == command.end() ? command.front() : *file).stem().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-' && c != '.'; }, '_');
  return name;
}

}  // namespace

Trainable::Trainable(Program some) : program(std::move(some)) {
  if (!program.is_set()) return;
  name = name_of(program.command);
  program.command.front() = absolute(program.command.front());
  if (program.working_directory.find('{') == std::string::npos && !program.working_directory.empty())
    program.working_directory = fs::absolute(program.working_directory).lexically_normal().string();
}

}  // namespace cadre::tune
