// The program `cadre`: inspects experiments.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "cadre/error.h"
#include "cadre/version.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int run(int argc, char** argv) {
  CLI::App program(
      "Looks at experiments: finished, interrupted, failed, or running in another\n"
      "process. Nothing is run or changed.",
      "cadre");
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("cadre ") + cadre::version(), "Show the version and exit");
  program.footer(
      "An experiment is a directory, the name of one in ~/cadre_results, or the URI\n"
      "of a published one (s3://bucket/folder/name).\n"
      "Exit code: 0; 1: something is not found or cannot be read; 2: wrong usage.");
  cadre::cli::add_ls(program);
  cadre::cli::add_show(program);
  cadre::cli::add_logs(program);
  cadre::cli::add_best(program);
  cadre::cli::add_plot(program);
  cadre::cli::add_replay(program);
  cadre::cli::add_export(program);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : kWrongUsage;  // 0: --help, --version
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // the reader of the output may stop, as `head` does
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: %s\n", cadre::cli::shown_lines(error.what()).c_str());
    return kFailed;
  }
}
