// Cadre's overhead for its users, compared with the plain operation in the same run. README.md explains each figure.
#include <libgen.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "learner.h"
#include "parts.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

using Part = Dict (*)(const Arguments&);

constexpr std::pair<std::string_view, Part> kParts[] = {
    {"fork-server", be_fork_server},        {"start-and-fork", start_and_fork}, {"one-trial", run_one_empty_trial},
    {"restore", restore_experiment},        {"own-memory", show_own_memory},    {"hold-trials", hold_trials},
    {"hold-plain-forks", hold_plain_forks},
};

int run_part(const Arguments& arguments) {
  for (const auto& [name, part] : kParts) {
    if (name != arguments.argv[2]) continue;
    std::cout << base::to_json(part(arguments)) << std::endl;
    return 0;
  }
  throw Error(std::string("there is no part ") + arguments.argv[2]);
}

bool wants_torch(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) { return std::strcmp(word, "--torch") == 0; });
}

// Executes the program with libtorch, which is beside this one, in place of this one.
[[noreturn]] void become_torch_program(char** argv) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").string() + "_torch";
  ::execv(program.c_str(), argv);
  throw Error("cannot run " + program.string() + " (" + base::last_system_error() +
              "): was this built with CADRE_TORCH=OFF?");
}

int run_workload(int argc, char** argv) {
  if (!with_torch() && wants_torch(argc, argv)) become_torch_program(argv);
  cli::Program program("Measures what Cadre costs. Prints a JSON object a line.", "cadre_bench");
  cli::Command command = program.command();
  for (const auto add : {add_empty_trial, add_reports, add_checkpoints, add_pbt, add_slot_share, add_trials,
                         add_programs, add_restart, add_memory, add_train, add_validation, add_cluster})
    add(command);
  return program.parse(argc, argv, 2);
}

}  // namespace
}  // namespace cadre::bench

int main(int argc, char** argv) {
  using namespace cadre::bench;
  try {
    const bool is_part = argc > 2 && std::strcmp(argv[1], kPartOption) == 0;
    return is_part ? run_part({argc, argv}) : run_workload(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "cadre_bench: " << error.what() << "\n";
    return 1;
  }
}
