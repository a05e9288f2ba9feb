// cadre run: a program on the nodes of a cluster.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cadre/error.h"
#include "cli/commands.h"
#include "worker/cluster.h"

namespace cadre::cli {
namespace {

struct RunOptions {
  std::string cluster = {};
  std::vector<std::string> command = {};
};

// Replaces this process by the program, whose cadre::init finds the cluster in its environment.
void run(RunOptions& options) {
  worker::set_cluster(options.cluster);
  worker::check_cluster();
  std::vector<char*> arguments;
  for (std::string& argument : options.command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw EngineError(fmt::format("cannot run {}: {}", options.command.front(), std::generic_category().message(errno)));
}

}  // namespace

void add_run(Command& program) {
  const auto options = std::make_shared<RunOptions>();
  Command command = program.add_command("run", "Run a program on the nodes of a cluster");
  command.option("--cluster", &options->cluster, "slurm, ray, or a JSON file: see cadre/cluster.h").required();
  command.option("command", &options->command, "The program and its arguments").required();
  command.footer("Example: cadre run --cluster slurm -- ./pbt_mnist --num-samples 32");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
