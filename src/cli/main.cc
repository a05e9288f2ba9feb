// The program `cadre`: makes and inspects experiments.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "base/standard_streams.h"
#include "cadre/error.h"
#include "cadre/version.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "engine/interrupts.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kAfterSignal = 128;  // as shells have it

int run(int argc, char** argv) {
  using namespace cadre::cli;
  Program program(
      "Tunes programs, and looks at experiments: finished, interrupted, failed, or\n"
      "running in another process. Only tune, suggest, observe, stop, pause, resume\n"
      "and enqueue change something; run starts a program on a cluster.",
      "cadre");
  program.set_version(std::string("cadre ") + cadre::version());
  Command command = program.command();
  command.footer(
      "An experiment is a directory, the name of one in ~/cadre_results, or the URI\n"
      "of a published one (s3://bucket/folder/name).\n"
      "Exit code: 0; 1: something is not found or cannot be read; 2: wrong usage.");
  for (const auto add :
       {add_ls, add_show, add_logs, add_tail, add_nodes, add_best, add_importance, add_plot, add_report, add_dashboard,
        add_replay, add_export, add_suggest, add_observe, add_run, add_requests, add_tune, add_completion, add_man})
    add(command);
  return program.parse(argc, argv, kWrongUsage);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // the reader of the output may stop, as `head` does
  try {
    cadre::base::open_closed_standard_streams();
    return run(argc, argv);
  } catch (const cadre::Interrupted& interrupted) {
    std::fprintf(stderr, "cadre: %s\n", cadre::cli::shown_lines(interrupted.what()).c_str());
    const int signal = cadre::engine::Interrupts::last_signal();
    return kAfterSignal + (signal != 0 ? signal : SIGINT);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: %s\n", cadre::cli::shown_lines(error.what()).c_str());
    return kFailed;
  }
}
